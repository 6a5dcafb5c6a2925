//! What is typed wrong, and what is told about it.

use crate::{records::texts, world::World};

#[test]
fn inputs_have_their_types() {
    let world = World::new();
    let args = ["-i", "word=12", "-i", "count=41", "-i", "loud=true", "-i", "list=a,b", "-i", r#"map={"k": [1]}"#];
    let records = world.expect(0, &[&["run", "typed", "--json"], &args[..]].concat()).records();
    assert_eq!(texts(&records, "stdout"), [r#"12 42 true ["a", "b"] {"k": [1]}"#]);
    let records = world.expect(0, &["run", "typed", "--json", "-i", "word=a=b", "-i", r#"list=["x, y"]"#]).records();
    assert_eq!(texts(&records, "stdout"), [r#"a=b 2 false ["x, y"] {}"#]);
}

/// What the command says with status 2 and nothing done, without the world's own paths.
#[track_caller]
fn refused(world: &World, code: i32, args: &[&str]) -> String {
    let done = world.expect(code, args);
    assert_eq!(done.stdout, "");
    assert_eq!(world.expect(0, &["runs", "--json"]).stdout, "", "nothing was started");
    let text = done.stderr.replace(world.playbooks.to_str().unwrap(), "[playbooks]");
    text.replace(world.file("").to_str().unwrap(), "[work]/")
}

#[test]
fn a_wrong_input_is_named_with_the_fix() {
    let world = World::new();
    let check = |args: &[&str]| refused(&world, 2, &[&["run", "typed"], args].concat());
    insta::assert_snapshot!(check(&["-i", "word=x", "-i", "cuont=2"]), @"taffrail: playbook typed: unknown input `cuont`; did you mean `count`?");
    insta::assert_snapshot!(check(&["-i", "word=x", "-i", "count=two"]), @"taffrail: input `count` must be a whole number, not what was given");
    insta::assert_snapshot!(check(&["-i", "word=x", "-i", "loud=maybe"]), @"taffrail: input `loud` must be `true` or `false`, not what was given");
    insta::assert_snapshot!(check(&["-i", "word=x", "-i", "map=[1]"]), @"taffrail: input `map` must be an object, not what was given");
    insta::assert_snapshot!(check(&[]), @"taffrail: playbook typed: input `word` is required: a string");
    insta::assert_snapshot!(check(&["-i", "word=x", "-i", "word=y"]), @"taffrail: input word is given twice");
    let done = refused(&world, 2, &["run", "typed", "-i", "word"]);
    assert!(done.contains("expected KEY=VALUE"), "{done}");
}

#[test]
fn an_unknown_playbook_leads_to_the_right_name() {
    let world = World::new();
    insta::assert_snapshot!(refused(&world, 4, &["run", "smal"]), @"taffrail: no playbook `smal` in [playbooks]; did you mean `small`?");
    insta::assert_snapshot!(refused(&world, 4, &["run", "./nowhere.yaml"]), @"taffrail: cannot read ./nowhere.yaml: No such file or directory (os error 2)");
    insta::assert_snapshot!(refused(&world, 2, &["run", "No Name"]), @"taffrail: `No Name` is not the name of a playbook: names are kebab-case, such as `deploy-one`");
}

#[test]
fn a_broken_playbook_is_told_with_its_place() {
    let world = World::new();
    let broken = "playbook: broken\nstates:\n  one:\n    run: echo\n    tiemout: 5s\n  two:\n    exec: [a]\n    gates:\n      - { when: exit.code ==, then: ok }\n";
    let path = world.write("broken.yaml", broken);
    let said = refused(&world, 2, &["run", path.to_str().unwrap()]);
    assert!(said.contains("[work]/broken.yaml:5:5") && said.contains("timeout"), "{said}");
    insta::assert_snapshot!(said, @r"
    taffrail: [work]/broken.yaml:5:5: error: unknown key `tiemout` in state `one`
      help: did you mean `timeout`?
    [work]/broken.yaml:9:17: error: bad condition: mismatched end of text (at character 13)
      help: conditions are CEL, such as `exit.code == 0`, or `otherwise`
    ");
    let path = world.write("no-yaml.yaml", "playbook: [\n");
    insta::assert_snapshot!(refused(&world, 2, &["run", path.to_str().unwrap()]), @"taffrail: [work]/no-yaml.yaml:2:1: error: not YAML: while parsing a node, did not find expected node content");
}

#[test]
fn an_unknown_run_is_status_4_everywhere() {
    let world = World::new();
    let id = "01a00000-0000-7000-8000-000000000000";
    for id in [id, "../x", "nonsense"] {
        for command in ["status", "logs", "resume", "approve", "cancel"] {
            let done = world.expect(4, &[command, id]);
            assert!(
                done.stderr.starts_with("taffrail: no run ") && done.stderr.contains(id),
                "{command}: {}",
                done.stderr
            );
        }
    }
}

#[test]
fn a_command_line_that_cannot_be_is_status_2() {
    let world = World::new();
    let wrong: [&[&str]; 8] = [
        &[],
        &["walk"],
        &["run"],
        &["exec"],
        &["exec", "--output-cap", "much", "--", "true"],
        &["logs", "x", "--after", "-1"],
        &["logs", "x", "--stream", "both"],
        &["gc", "--max-age", "soon"],
    ];
    for args in wrong {
        let done = world.expect(2, args);
        assert!(done.stdout.is_empty() && !done.stderr.is_empty(), "{args:?}");
    }
    for key in ["", &"k".repeat(257)] {
        let done = world.expect(2, &["run", "small", "--idempotency-key", key]);
        assert!(done.stderr.contains("1 to 256 characters"), "{}", done.stderr);
    }
    for args in [
        &["run", "small", "--thread", "a b"][..],
        &["exec", "--thread", "", "--", "true"],
        &["runs", "--thread", "../x"],
    ] {
        world.expect(2, args);
    }
    assert!(!world.data().join("spool").exists(), "nothing ran");
}
