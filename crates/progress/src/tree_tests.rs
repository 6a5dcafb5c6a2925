//! The rule, on a tree alone. The whole path to the wire is in `tests/it`.

use proptest::prelude::*;

use super::*;

/// A tree of the total 1 with these branches.
fn tree(weights: &[f64], open: bool) -> (Tree, Vec<NodeId>) {
    let mut tree = Tree::new(None, Some(1.0));
    let root = tree.root();
    let ids = tree.divide(root, weights, open).unwrap();
    (tree, ids)
}

fn begin(tree: &mut Tree, id: NodeId, total: Option<f64>) -> Arc<Guard> {
    let guard = Arc::new(Guard::new());
    assert!(tree.begin(id, &guard, total));
    guard
}

#[track_caller]
fn shows(tree: &Tree, expected: f64) {
    let (value, _) = tree.value();
    assert!((value - expected).abs() < 1e-12, "{value} instead of {expected}");
}

#[test]
fn known_work_shows_as_its_weighted_mean() {
    let (mut tree, ids) = tree(&[1.0, 3.0], false);
    shows(&tree, 0.0);
    let [a, b] = [begin(&mut tree, ids[0], Some(10.0)), begin(&mut tree, ids[1], Some(1000.0))];
    shows(&tree, 0.0);
    a.accept(5.0).unwrap();
    shows(&tree, 0.125);
    b.accept(500.0).unwrap();
    shows(&tree, 0.5);
}

#[test]
fn complete_only_when_every_branch_is_and_nobody_can_begin_anew() {
    let (mut tree, ids) = tree(&[1.0, 1.0], false);
    let [a, b] = [begin(&mut tree, ids[0], Some(2.0)), begin(&mut tree, ids[1], None)];
    a.accept(2.0).unwrap();
    b.accept(1e300).unwrap();
    assert!(!tree.value().1);
    tree.done(ids[1]);
    let (value, is_final) = tree.value();
    assert!(value < 1.0 && !is_final, "the first is reached, but held");
    tree.let_go(ids[0]);
    assert_eq!(tree.value(), (1.0, true));
}

#[test]
fn a_branch_that_was_dropped_before_its_end_leaves_the_whole_incomplete() {
    let (mut tree, ids) = tree(&[1.0, 1.0], false);
    begin(&mut tree, ids[0], Some(2.0)).accept(1.0).unwrap();
    tree.let_go(ids[0]);
    tree.done(ids[1]);
    shows(&tree, 0.75);
    assert!(!tree.value().1);
}

#[test]
fn who_joins_late_shares_what_is_left() {
    let (mut tree, ids) = tree(&[1.0], false);
    let guard = begin(&mut tree, ids[0], Some(10.0));
    let inner = tree.split(ids[0], &guard, &[], true).unwrap();
    assert!(inner.is_empty());
    let first = tree.join(ids[0], 1.0).unwrap();
    begin(&mut tree, first, Some(2.0)).accept(1.0).unwrap();
    let before = tree.value().0;
    let second = tree.join(ids[0], 1.0).unwrap();
    shows(&tree, before);
    tree.done(first);
    tree.done(second);
    assert!(tree.value().0 < 1.0, "a third may come");
    tree.close(ids[0]);
    assert!(tree.value().0 < 1.0, "the branch is held");
    tree.let_go(ids[0]);
    assert_eq!(tree.value(), (1.0, true));
}

#[test]
fn a_closed_set_has_no_room_and_an_empty_one_is_no_work() {
    let mut tree = Tree::new(Some(4.0), None);
    let root = tree.root();
    tree.divide(root, &[], true).unwrap();
    shows(&tree, 4.0);
    tree.close(root);
    assert_eq!(tree.value(), (5.0, true));
    assert_eq!(tree.join(root, 1.0), Err(ProgressError::Complete));
}

#[test]
fn another_try_keeps_what_is_shown_and_covers_the_rest() {
    let (mut tree, ids) = tree(&[1.0], false);
    begin(&mut tree, ids[0], Some(10.0)).accept(6.0).unwrap();
    shows(&tree, 0.6);
    let again = begin(&mut tree, ids[0], Some(10.0));
    shows(&tree, 0.6);
    again.accept(5.0).unwrap();
    shows(&tree, 0.8);
    again.accept(10.0).unwrap();
    tree.let_go(ids[0]);
    assert_eq!(tree.value(), (1.0, true));
    let late = Arc::new(Guard::new());
    assert!(!tree.begin(ids[0], &late, None), "nobody holds it any more");
}

#[test]
fn a_try_after_one_that_reached_its_total_has_something_left_to_cover() {
    let (mut tree, ids) = tree(&[1.0], false);
    begin(&mut tree, ids[0], Some(10.0)).accept(10.0).unwrap();
    shows(&tree, 1.0 - KEPT);
    begin(&mut tree, ids[0], Some(10.0)).accept(5.0).unwrap();
    shows(&tree, 1.0 - KEPT / 2.0);
}

#[test]
fn the_last_of_very_many_branches_still_show() {
    let (mut tree, ids) = tree(&[1.0; 10_000], false);
    let (last, others) = ids.split_last().unwrap();
    others.iter().for_each(|id| tree.done(*id));
    shows(&tree, 0.9999);
    begin(&mut tree, *last, Some(2.0)).accept(1.0).unwrap();
    shows(&tree, 0.99995);
}

#[test]
fn tries_of_a_split_branch_leave_nothing_behind() {
    let (mut tree, ids) = tree(&[1.0], false);
    let size = tree.len();
    for _ in 0..200 {
        let guard = begin(&mut tree, ids[0], None);
        for id in tree.split(ids[0], &guard, &[1.0, 1.0], false).unwrap() {
            let guard = begin(&mut tree, id, Some(1.0));
            tree.split(id, &guard, &[1.0], true).unwrap();
            tree.done(id);
        }
    }
    assert!(tree.value().0 < 1.0 && !tree.value().1);
    begin(&mut tree, ids[0], None);
    assert_eq!(tree.len(), size);
    tree.done(ids[0]);
    assert_eq!(tree.value(), (1.0, true));
}

#[test]
fn a_total_that_grows_keeps_what_is_shown() {
    let (mut tree, ids) = tree(&[1.0], false);
    let guard = begin(&mut tree, ids[0], Some(10.0));
    guard.accept(5.0).unwrap();
    tree.grow(ids[0], &guard, 25.0).unwrap();
    shows(&tree, 0.5);
    guard.accept(15.0).unwrap();
    shows(&tree, 0.75);
    assert!(matches!(tree.grow(ids[0], &guard, 20.0), Err(ProgressError::NotGreater { .. })));
    guard.accept(25.0).unwrap();
    assert_eq!(tree.grow(ids[0], &guard, 30.0), Err(ProgressError::Complete));
}

#[test]
fn a_total_can_become_known() {
    let (mut tree, ids) = tree(&[1.0], false);
    let guard = begin(&mut tree, ids[0], None);
    guard.accept(255.0).unwrap();
    shows(&tree, 0.5);
    assert!(matches!(tree.grow(ids[0], &guard, 255.0), Err(ProgressError::NotGreater { .. })));
    tree.grow(ids[0], &guard, 355.0).unwrap();
    guard.accept(305.0).unwrap();
    shows(&tree, 0.75);
}

#[test]
fn what_is_abandoned_is_shared_by_the_others() {
    let (mut tree, ids) = tree(&[1.0, 1.0], false);
    begin(&mut tree, ids[0], Some(10.0)).accept(5.0).unwrap();
    tree.abandon(ids[1]);
    shows(&tree, 0.25);
    begin(&mut tree, ids[0], Some(10.0)).accept(5.0).unwrap();
    shows(&tree, 1.0 - 0.75 / 2.0);
    tree.done(ids[0]);
    assert_eq!(tree.value(), (1.0, true));
}

#[test]
fn handles_to_what_is_gone_do_nothing() {
    let (mut tree, ids) = tree(&[1.0, 1.0], false);
    let guard = begin(&mut tree, ids[0], Some(10.0));
    let below = tree.split(ids[0], &guard, &[1.0], false).unwrap();
    tree.done(ids[0]);
    let before = tree.value();
    tree.done(below[0]);
    tree.abandon(below[0]);
    tree.let_go(below[0]);
    tree.close(below[0]);
    assert!(!tree.begin(below[0], &guard, None));
    assert_eq!(tree.split(below[0], &guard, &[1.0], false), Err(ProgressError::Complete));
    assert_eq!(tree.grow(below[0], &guard, 11.0), Err(ProgressError::Complete));
    assert_eq!(tree.join(below[0], 1.0), Err(ProgressError::Complete));
    assert_eq!(tree.value(), before);
}

#[test]
fn an_emitter_of_an_earlier_try_changes_nothing() {
    let (mut tree, ids) = tree(&[1.0], false);
    let old = begin(&mut tree, ids[0], Some(10.0));
    begin(&mut tree, ids[0], Some(10.0));
    old.accept(10.0).unwrap();
    tree.let_go(ids[0]);
    assert_eq!(tree.value(), (0.0, false));
    assert_eq!(tree.grow(ids[0], &old, 20.0), Err(ProgressError::Complete));
    assert_eq!(tree.split(ids[0], &old, &[1.0], false), Err(ProgressError::Complete));
}

#[test]
fn nesting_ends_somewhere() {
    let (mut tree, ids) = tree(&[1.0], false);
    let mut id = ids[0];
    let refused = loop {
        let guard = begin(&mut tree, id, None);
        match tree.split(id, &guard, &[1.0], false) {
            Ok(below) => id = below[0],
            Err(error) => break error,
        }
    };
    assert_eq!(refused, ProgressError::TooDeep);
    tree.done(id);
    assert!(!tree.value().1, "those above are held");
}

#[test]
fn weights_have_bounds() {
    for weight in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e10, 1e-10] {
        assert!(matches!(check_weight(weight), Err(ProgressError::BadWeight { .. })));
    }
    let (mut tree, _) = tree(&[1.0; 3], true);
    let root = tree.root();
    let size = tree.len();
    assert!(tree.join(root, -1.0).is_err() && tree.divide(root, &[1.0, 0.0], false).is_err());
    assert_eq!(tree.len(), size);
}

/// Does something to one of the nodes that were ever made, whether or not it makes sense.
fn act(tree: &mut Tree, nodes: &mut Vec<(NodeId, Arc<Guard>)>, (which, what, number): (usize, u8, f64)) {
    let index = which % nodes.len();
    let (id, guard) = nodes[index].clone();
    let mut made = Vec::new();
    match what % 12 {
        0 | 1 => {
            nodes[index].1 = Arc::new(Guard::new());
            tree.begin(id, &nodes[index].1, [None, Some(1.0 + number)][usize::from(what % 2)]);
        }
        2 => made = tree.split(id, &guard, &[1.0, 1.0 + number, 0.1], false).unwrap_or_default(),
        3 => drop(tree.split(id, &guard, &[], true)),
        4 | 5 => made.extend(tree.join(id, 1.0 + number)),
        6 => tree.close(id),
        7 if number > 90.0 => tree.done(id),
        8 if number > 80.0 => tree.let_go(id),
        9 if number > 70.0 && id != tree.root() => tree.abandon(id),
        10 => drop(tree.grow(id, &guard, guard.last().unwrap_or(0.0) + number)),
        _ => drop(guard.accept(guard.last().unwrap_or(0.0) + number)),
    }
    nodes.extend(made.into_iter().map(|id| (id, Arc::new(Guard::new()))));
}

proptest! {
    /// The rule itself, before anything that would hide a mistake in it.
    #[test]
    fn what_is_shown_never_falls(
        open in any::<bool>(),
        acts in prop::collection::vec((any::<usize>(), any::<u8>(), 0.0..100.0), 0..300),
    ) {
        let mut tree = Tree::new(None, Some(1.0));
        let root = tree.root();
        let ids = tree.divide(root, &[1.0, 2.0], open).unwrap();
        let mut nodes: Vec<_> = ids.into_iter().chain([root]).map(|id| (id, Arc::new(Guard::new()))).collect();
        let mut before = tree.value();
        for one in acts {
            act(&mut tree, &mut nodes, one);
            let now = tree.value();
            // A logarithm may be rounded the wrong way.
            prop_assert!(now.0 >= before.0 - 1e-15, "{before:?} {now:?} {one:?}");
            prop_assert!(now.1 || !before.1, "final stays final");
            prop_assert_eq!(now.0 == 1.0, now.1);
            before = now;
        }
    }
}
