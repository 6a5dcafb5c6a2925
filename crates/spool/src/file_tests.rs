use std::{
    fs,
    os::unix::fs::FileExt,
    sync::{Arc, Mutex},
};

use tempfile::TempDir;

use super::*;
use crate::{
    keep,
    testing::{block, line, lines, run},
};

/// A disk with room for so many bytes more.
#[derive(Clone, Default)]
struct SmallDisk {
    room: Arc<Mutex<Option<usize>>>,
    cuts_fail: Arc<Mutex<bool>>,
}

impl Disk for SmallDisk {
    fn write(&mut self, file: &mut File, bytes: &[u8]) -> io::Result<usize> {
        let mut room = self.room.lock().unwrap();
        let take = room.map_or(bytes.len(), |room| room.min(bytes.len()));
        if take == 0 {
            return Err(io::Error::from_raw_os_error(rustix::io::Errno::NOSPC.raw_os_error()));
        }
        *room = room.map(|room| room - take);
        io::Write::write(file, &bytes[..take])
    }

    fn cut(&mut self, file: &File, len: u64) -> io::Result<()> {
        if *self.cuts_fail.lock().unwrap() { Err(io::ErrorKind::Other.into()) } else { file.set_len(len) }
    }
}

fn open(folder: &TempDir, limits: Limits) -> SpoolFile {
    SpoolFile::open(folder.path().join("s"), &run(), limits).unwrap()
}

fn small(file_bytes: u64) -> Limits {
    Limits { file_bytes, ..Limits::default() }
}

/// All records in all files, oldest first; checks that every file begins with a first line that tells the truth.
fn records(folder: &TempDir) -> String {
    let mut all = String::new();
    for segment in keep::segments(folder.path().join("s"), &run()).unwrap() {
        let text = fs::read_to_string(&segment.path).unwrap();
        if text.is_empty() {
            continue;
        }
        let (head, rest) = text.split_once('\n').unwrap();
        let head = SegmentHead::parse(head.as_bytes()).unwrap();
        assert!(rest.starts_with(&format!("{{\"seq\":{},", head.first)), "{text}");
        assert!(rest.ends_with('\n'), "{text}");
        all.push_str(rest);
    }
    all
}

fn heads(folder: &TempDir) -> Vec<(u64, u64)> {
    let segments = keep::segments(folder.path().join("s"), &run()).unwrap();
    segments.iter().filter_map(|segment| segment.head.as_ref()).map(|head| (head.first.0, head.dropped_to.0)).collect()
}

#[test]
fn a_disk_that_fills_up_at_any_byte_leaves_whole_lines_and_loses_nothing() {
    // The second block does not fit the first file, so that a rotation is among the places where it can happen.
    let blocks = [block(1, 3, 150), block(4, 4, 150)];
    let limits = small(1000);
    let whole = lines(1, 7, 150);
    for room in 0..=whole.len() + 300 {
        let folder = TempDir::new().unwrap();
        let disk = SmallDisk::default();
        let mut file = SpoolFile::open_on(Box::new(disk.clone()), &folder.path().join("s"), &run(), limits).unwrap();
        *disk.room.lock().unwrap() = Some(room);
        let result = blocks.iter().try_for_each(|block| file.append(block));
        let there = records(&folder);
        let kept = there.lines().count() as u64;
        assert_eq!(there, lines(1, kept, 150), "room {room}");
        assert_eq!(file.cursor(), Seq(kept), "room {room}");
        match result {
            Ok(()) => assert_eq!(kept, 7),
            Err(SpoolError::Full { path }) => assert_eq!(path, file.path()),
            Err(other) => panic!("room {room}: {other}"),
        }
        assert!(!folder.path().join("s/r-1.jsonl.next").exists());
        *disk.room.lock().unwrap() = None;
        blocks.iter().for_each(|block| file.append(block).unwrap());
        assert_eq!(records(&folder), whole, "room {room}");
        assert_eq!(file.cursor(), Seq(7));
    }
}

#[test]
fn what_could_not_be_cut_is_cut_before_the_next_write() {
    let folder = TempDir::new().unwrap();
    let disk = SmallDisk::default();
    let mut file = SpoolFile::open_on(Box::new(disk.clone()), &folder.path().join("s"), &run(), small(9999)).unwrap();
    file.append(&block(1, 1, 150)).unwrap();
    *disk.room.lock().unwrap() = Some(200);
    *disk.cuts_fail.lock().unwrap() = true;
    file.append(&block(2, 3, 150)).unwrap_err();
    assert_eq!(file.cursor(), Seq(2));
    *disk.room.lock().unwrap() = None;
    assert!(matches!(file.append(&block(3, 2, 150)), Err(SpoolError::Io { action: "cut", .. })));
    *disk.cuts_fail.lock().unwrap() = false;
    file.append(&block(3, 2, 150)).unwrap();
    assert_eq!(records(&folder), lines(1, 4, 150));
}

#[test]
fn a_file_torn_at_any_byte_goes_on_where_it_ends() {
    let folder = TempDir::new().unwrap();
    let blocks = [block(1, 2, 120), block(3, 4, 120)];
    let mut file = open(&folder, Limits::default());
    blocks.iter().for_each(|block| file.append(block).unwrap());
    let path = file.path().to_path_buf();
    drop(file);
    let whole = fs::read(&path).unwrap();
    for (cut, tail) in (0..whole.len()).flat_map(|cut| [(cut, &b""[..]), (cut, &[0; 300]), (cut, b"{\"seq\":9}\n\n")]) {
        // What is torn within the first line is nothing; junk with a line end there is not ours to touch.
        if cut < 60 && tail.len() == 11 {
            continue;
        }
        let torn = [&whole[..cut], tail].concat();
        fs::write(&path, &torn).unwrap();
        let Ok(mut file) = SpoolFile::open(folder.path().join("s"), &run(), Limits::default()) else {
            assert!(whole[..cut].iter().all(|&b| b != b'\n'), "cut {cut} tail {}", tail.len());
            continue;
        };
        let kept = memchr::memchr_iter(b'\n', &whole[..cut]).count().saturating_sub(1);
        assert_eq!(file.cursor(), Seq(kept as u64), "cut {cut} tail {}", tail.len());
        assert_eq!(records(&folder), lines(1, kept as u64, 120));
        blocks.iter().for_each(|block| file.append(block).unwrap());
        assert_eq!(fs::read(&path).unwrap(), whole, "cut {cut} tail {}", tail.len());
    }
}

#[test]
fn a_rotation_cut_short_at_any_step_is_put_right() {
    let s = |folder: &TempDir, name: &str| folder.path().join("s").join(name);
    let check = |what: &str, damage: &dyn Fn(&TempDir)| {
        let folder = TempDir::new().unwrap();
        let mut file = open(&folder, small(600));
        (1..=6).for_each(|seq| file.append(&block(seq, 1, 200)).unwrap());
        drop(file);
        let before = records(&folder);
        assert!(s(&folder, "r-1.2.jsonl").exists(), "{what}");
        damage(&folder);
        assert_eq!(records(&folder), before, "{what}: a reader in between");
        assert_eq!(keep::mend(folder.path().join("s")).unwrap().files, 0, "{what}");
        assert_eq!(records(&folder), before, "{what}: mended");
        damage(&folder);
        let mut file = open(&folder, small(600));
        assert_eq!(file.cursor(), Seq(6), "{what}");
        (5..=12).for_each(|seq| file.append(&block(seq, 1, 200)).unwrap());
        assert_eq!(records(&folder), lines(1, 12, 200), "{what}");
        assert!(!s(&folder, "r-1.jsonl.next").exists(), "{what}");
    };
    check("a prepared file is left", &|folder| {
        fs::write(s(folder, "r-1.jsonl.next"), "{\"type\":\"spool-seg").unwrap();
    });
    check("the files were shifted, not all of them", &|folder| {
        if !s(folder, "r-1.4.jsonl").exists() {
            fs::rename(s(folder, "r-1.2.jsonl"), s(folder, "r-1.4.jsonl")).unwrap();
        }
    });
    check("the current file has a second name", &|folder| {
        if s(folder, "r-1.1.jsonl").exists() {
            fs::rename(s(folder, "r-1.2.jsonl"), s(folder, "r-1.3.jsonl")).unwrap();
            fs::rename(s(folder, "r-1.1.jsonl"), s(folder, "r-1.2.jsonl")).unwrap();
        }
        fs::hard_link(s(folder, "r-1.jsonl"), s(folder, "r-1.1.jsonl")).unwrap();
    });
    check("without hard links, the path has no file", &|folder| {
        if s(folder, "r-1.jsonl").exists() {
            fs::rename(s(folder, "r-1.2.jsonl"), s(folder, "r-1.3.jsonl")).unwrap();
            fs::rename(s(folder, "r-1.1.jsonl"), s(folder, "r-1.2.jsonl")).unwrap();
            fs::rename(s(folder, "r-1.jsonl"), s(folder, "r-1.1.jsonl")).unwrap();
        }
    });
}

#[test]
fn blocks_again_and_blocks_of_others() {
    let folder = TempDir::new().unwrap();
    let mut file = open(&folder, Limits::default());
    file.append(&block(3, 4, 120)).unwrap();
    file.append(&block(3, 4, 120)).unwrap();
    file.append(&block(1, 2, 120)).unwrap();
    file.append(&block(5, 4, 120)).unwrap();
    // 9 to 19 are another run's.
    file.append(&block(20, 1, 120)).unwrap();
    assert_eq!(file.cursor(), Seq(20));
    assert_eq!(records(&folder), lines(3, 6, 120) + &line(20, 120));
    let mut other = block(21, 1, 120);
    other.run = RunId::new("r-2").unwrap();
    assert!(matches!(file.append(&other), Err(SpoolError::Block { .. })));
    let mut half = block(21, 1, 120);
    half.bytes = half.bytes.slice(..half.bytes.len() - 1);
    assert!(matches!(file.append(&half), Err(SpoolError::Block { .. })));
    assert_eq!(heads(&folder), [(3, 0)]);
}

#[test]
fn what_the_log_no_longer_has_is_told_in_a_first_line() {
    let folder = TempDir::new().unwrap();
    let mut file = open(&folder, Limits::default());
    file.skip_to(Seq(4));
    file.append(&block(5, 2, 120)).unwrap();
    file.skip_to(Seq(3));
    file.append(&block(7, 1, 120)).unwrap();
    file.skip_to(Seq(20));
    assert_eq!(file.cursor(), Seq(20));
    file.append(&block(21, 1, 120)).unwrap();
    assert_eq!(heads(&folder), [(5, 4), (21, 20)]);
}

#[test]
fn a_run_keeps_to_its_limit_and_says_what_it_dropped() {
    let folder = TempDir::new().unwrap();
    let limits = Limits { file_bytes: 1000, run_bytes: 3000, ..Limits::default() };
    let mut file = open(&folder, limits);
    for seq in 1..=100 {
        file.append(&block(seq, 1, 200)).unwrap();
        let sizes: u64 = keep::list(folder.path().join("s")).unwrap().iter().map(|listed| listed.bytes).sum();
        assert!(sizes <= 3000, "{seq}: {sizes}");
    }
    let heads = heads(&folder);
    let (first, _) = heads[0];
    assert!(heads.len() >= 2 && first > 80, "{heads:?}");
    assert_eq!(heads.last().unwrap().1, first - 1);
    assert_eq!(records(&folder), lines(first, 101 - first, 200));
    // A sweep that came in between is told, too, be it by a writer that was there or by the next one.
    drop(file);
    let none = Limits { total_bytes: 0, ..limits };
    keep::sweep(folder.path().join("s"), &none, &|_| true, door::now()).unwrap();
    let mut file = open(&folder, limits);
    (101..=104).for_each(|seq| file.append(&block(seq, 1, 200)).unwrap());
    let told = self::heads(&folder);
    assert_eq!(told.last().unwrap().1, told[0].0 - 1);
    keep::sweep(folder.path().join("s"), &none, &|_| false, door::now()).unwrap();
    (105..=108).for_each(|seq| file.append(&block(seq, 1, 200)).unwrap());
    let told = self::heads(&folder);
    assert_eq!(told.last().unwrap().1, told[0].0 - 1);
}

#[test]
fn a_file_that_somebody_removed_moved_or_cut_is_begun_anew() {
    let folder = TempDir::new().unwrap();
    let mut file = open(&folder, Limits::default());
    let path = file.path().to_path_buf();
    file.append(&block(1, 3, 120)).unwrap();
    fs::remove_file(&path).unwrap();
    file.append(&block(4, 1, 120)).unwrap();
    assert_eq!((heads(&folder), records(&folder)), (vec![(4, 3)], line(4, 120)));
    fs::rename(&path, folder.path().join("elsewhere")).unwrap();
    file.append(&block(5, 1, 120)).unwrap();
    assert_eq!((heads(&folder), records(&folder)), (vec![(5, 4)], line(5, 120)));
    fs::File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
    file.append(&block(6, 2, 120)).unwrap();
    assert_eq!((heads(&folder), records(&folder)), (vec![(6, 5)], lines(6, 2, 120)));
    let whole = fs::metadata(&path).unwrap().len();
    fs::File::options().write(true).open(&path).unwrap().set_len(whole - 5).unwrap();
    file.append(&block(8, 1, 120)).unwrap();
    assert_eq!((heads(&folder), records(&folder)), (vec![(6, 5), (8, 7)], line(6, 120) + &line(8, 120)));
    let end = fs::metadata(&path).unwrap().len();
    fs::File::options().write(true).open(&path).unwrap().write_all_at(b"scribble", end).unwrap();
    file.append(&block(9, 1, 120)).unwrap();
    assert_eq!(records(&folder), line(6, 120) + &lines(8, 2, 120));
    fs::remove_dir_all(folder.path().join("s")).unwrap();
    file.append(&block(10, 1, 120)).unwrap();
    assert_eq!((heads(&folder), records(&folder)), (vec![(10, 9)], line(10, 120)));
    assert!(matches!(
        SpoolFile::open(folder.path().join("s"), &run(), Limits::default()),
        Err(SpoolError::Busy { .. })
    ));
}
