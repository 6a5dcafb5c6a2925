//! Blocks as they are stored: LZ4, when that pays; large ones in pieces, so that a page does not pay for all of it.

use std::{cell::RefCell, ops::Range};

use bytes::Bytes;
use lz4_flex::block::{CompressTable, compress_into_with_table, decompress_into, get_maximum_output_size};

/// Shorter blocks stay plain: a page of the database holds them anyway.
const MIN_BYTES: usize = 512;
/// Largest share of the size, in percent, that still counts as compressed. Reading a plain block is cheaper.
const MAX_PERCENT: usize = 88;
/// Output buffers up to this size are kept for the next block: the largest block that the relay makes, and then some.
const KEPT_BYTES: usize = 1 << 20;

/// A block is compressed in pieces of whole lines of about this size: a page of 200 records then decompresses two or
/// three of them and not 256 KiB, which takes longer than all else about it. Smaller pieces compress worse.
const PIECE_BYTES: usize = 32 * 1024;
/// Blocks up to this size are one piece.
const WHOLE_BYTES: usize = PIECE_BYTES * 3 / 2;
/// Bytes of a piece's entry in the table before the pieces: size, stored size and lines, little-endian `u32` each.
const ENTRY_BYTES: usize = 12;

/// How the bytes of a block are stored. The number is in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i64)]
enum Codec {
    Plain = 0,
    /// One LZ4 block.
    Lz4 = 1,
    /// The number of pieces (`u32`), a table, and the pieces, an LZ4 block each. Since format 2.
    Pieces = 2,
}

/// The bytes of a block, ready to be stored.
#[derive(Debug)]
pub(crate) enum Packed {
    Plain(Bytes),
    Lz4(Vec<u8>),
    Pieces(Vec<u8>),
}

impl Packed {
    /// The number of its codec.
    pub(crate) const fn codec(&self) -> i64 {
        match self {
            Packed::Plain(_) => Codec::Plain as i64,
            Packed::Lz4(_) => Codec::Lz4 as i64,
            Packed::Pieces(_) => Codec::Pieces as i64,
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Packed::Plain(bytes) => bytes,
            Packed::Lz4(bytes) | Packed::Pieces(bytes) => bytes,
        }
    }
}

/// Hash tables and an output buffer of one thread: clearing them costs a third of making them.
struct Scratch {
    /// For less than 64 KiB: entries of 16 bits, so half as much to clear.
    small: CompressTable,
    large: CompressTable,
    out: Vec<u8>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::new(Scratch {
        small: CompressTable::small(),
        large: CompressTable::large(),
        out: Vec::new(),
    });
}

/// Compresses when that pays. About 0.3 µs for a log record of 300 bytes.
pub(crate) fn pack(bytes: Bytes) -> Packed {
    if bytes.len() < MIN_BYTES {
        return Packed::Plain(bytes);
    }
    SCRATCH.with_borrow_mut(|scratch| {
        let pieces = pieces(&bytes);
        let packed = match pieces.as_slice() {
            [_] => scratch.compress(&bytes).map(<[u8]>::to_vec).map(Packed::Lz4),
            pieces => pack_pieces(&bytes, pieces, scratch).map(Packed::Pieces),
        };
        if scratch.out.len() > KEPT_BYTES {
            scratch.out = Vec::new();
        }
        let pays = |packed: &Packed| packed.bytes().len() <= bytes.len() / 100 * MAX_PERCENT;
        packed.filter(pays).unwrap_or(Packed::Plain(bytes.clone()))
    })
}

impl Scratch {
    /// Nothing when it fails, which it cannot with that much room; plain is right should it ever.
    fn compress(&mut self, bytes: &[u8]) -> Option<&[u8]> {
        let most = get_maximum_output_size(bytes.len());
        if self.out.len() < most {
            self.out.resize(most, 0);
        }
        let table = if bytes.len() < usize::from(u16::MAX) { &mut self.small } else { &mut self.large };
        let size = compress_into_with_table(bytes, &mut self.out, table).ok()?;
        self.out.get(..size)
    }
}

/// Cuts at line ends.
fn pieces(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut pieces = Vec::new();
    let mut start = 0;
    while bytes.len() - start > WHOLE_BYTES {
        let Some(end) = bytes.get(start + PIECE_BYTES..).and_then(|rest| memchr::memchr(b'\n', rest)) else { break };
        let end = start + PIECE_BYTES + end + 1;
        pieces.push(start..end);
        start = end;
    }
    if start < bytes.len() {
        pieces.push(start..bytes.len());
    }
    pieces
}

fn pack_pieces(bytes: &[u8], pieces: &[Range<usize>], scratch: &mut Scratch) -> Option<Vec<u8>> {
    let mut packed = vec![0; 4 + pieces.len() * ENTRY_BYTES];
    packed.get_mut(..4)?.copy_from_slice(&u32::try_from(pieces.len()).ok()?.to_le_bytes());
    for (at, piece) in pieces.iter().enumerate() {
        let lines = bytes.get(piece.clone())?;
        let stored = scratch.compress(lines)?;
        let entry = [lines.len(), stored.len(), memchr::memchr_iter(b'\n', lines).count()];
        packed.extend_from_slice(stored);
        let place = packed.get_mut(4 + at * ENTRY_BYTES..)?;
        for (place, number) in place.chunks_exact_mut(4).zip(entry) {
            place.copy_from_slice(&u32::try_from(number).ok()?.to_le_bytes());
        }
    }
    Some(packed)
}

/// Lines of a block.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Lines {
    /// Lines before them that were not wanted.
    pub(crate) skipped: u64,
    pub(crate) bytes: Bytes,
    /// Nothing of the block follows.
    pub(crate) to_end: bool,
}

/// The lines of a stored block of `raw` bytes: at least those that begin after the first `skip` lines, until there are
/// `max_bytes` of them or the block ends.
///
/// # Errors
///
/// A description of the damage, when `stored` cannot have come from `raw` bytes.
pub(crate) fn unpack(codec: i64, raw: u64, stored: &[u8], skip: u64, max_bytes: usize) -> Result<Lines, String> {
    let whole = |bytes| Lines { skipped: 0, bytes, to_end: true };
    match codec {
        codec if codec == Codec::Plain as i64 => Ok(whole(Bytes::copy_from_slice(stored))),
        codec if codec == Codec::Lz4 as i64 => {
            let mut bytes = Vec::new();
            inflate(stored, usize::try_from(raw).unwrap_or(usize::MAX), &mut bytes)?;
            Ok(whole(bytes.into()))
        }
        codec if codec == Codec::Pieces as i64 => unpack_pieces(raw, stored, skip, max_bytes),
        codec => Err(format!("unknown codec {codec}")),
    }
}

fn unpack_pieces(raw: u64, stored: &[u8], mut skip: u64, max_bytes: usize) -> Result<Lines, String> {
    let short = || "the table of its pieces is cut off".to_owned();
    let number = |at: usize| {
        let bytes = stored.get(at..at.checked_add(4)?)?.try_into().ok()?;
        usize::try_from(u32::from_le_bytes(bytes)).ok()
    };
    let count = number(0).ok_or_else(short)?;
    let mut data = count.checked_mul(ENTRY_BYTES).and_then(|table| stored.get(4 + table..)).ok_or_else(short)?;
    let (mut bytes, mut skipped, mut size) = (Vec::new(), 0, 0u64);
    let mut to_end = true;
    for at in 0..count {
        let entry = [0, 4, 8].map(|field| number(4 + at * ENTRY_BYTES + field));
        let [Some(length), Some(packed), Some(lines)] = entry else { return Err(short()) };
        let (piece, rest) = data.split_at_checked(packed).ok_or_else(|| "its pieces are cut off".to_owned())?;
        data = rest;
        size += length as u64;
        if bytes.is_empty() && skip >= lines as u64 {
            skip -= lines as u64;
            skipped += lines as u64;
        } else if bytes.is_empty() || bytes.len() < max_bytes {
            let start = bytes.len();
            inflate(piece, length, &mut bytes)?;
            let found = memchr::memchr_iter(b'\n', bytes.get(start..).unwrap_or_default()).count();
            if found != lines {
                return Err(format!("{found} lines in a piece where {lines} were expected"));
            }
        } else {
            to_end = false;
        }
    }
    if size != raw || !data.is_empty() {
        return Err(format!("pieces of {size} bytes, and {} more, where {raw} were expected", data.len()));
    }
    Ok(Lines { skipped, bytes: bytes.into(), to_end })
}

/// Appends what was compressed.
fn inflate(stored: &[u8], size: usize, out: &mut Vec<u8>) -> Result<(), String> {
    // A byte of LZ4 stands for at most 255: a damaged size must not make us reserve all memory.
    if size > stored.len().saturating_mul(255) {
        return Err(format!("{} bytes cannot hold {size}", stored.len()));
    }
    let start = out.len();
    out.resize(start + size, 0);
    let filled = decompress_into(stored, out.get_mut(start..).unwrap_or_default()).map_err(|e| e.to_string())?;
    if filled != size {
        return Err(format!("{filled} bytes where {size} were expected"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: Vec<u8>, codec: Codec) {
        let bytes = Bytes::from(bytes);
        let packed = pack(bytes.clone());
        assert_eq!(packed.codec(), codec as i64, "{} bytes", bytes.len());
        let read = unpack(packed.codec(), bytes.len() as u64, packed.bytes(), 0, usize::MAX);
        assert_eq!(read, Ok(Lines { skipped: 0, bytes, to_end: true }));
    }

    fn lines(count: usize) -> Vec<u8> {
        (0..count).flat_map(|n| format!("line {n} of many that look alike\n").into_bytes()).collect()
    }

    fn noise(len: usize) -> Vec<u8> {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        };
        (0..len).map(|_| next()).collect()
    }

    #[test]
    fn what_compresses_is_compressed_and_comes_back() {
        for len in [0, 1, 511] {
            check(vec![b'a'; len], Codec::Plain);
        }
        for len in [512, 65_534, 65_535, 65_536, 262_144, 3 << 20] {
            check(vec![b'a'; len], Codec::Lz4);
            check(noise(len).into_iter().filter(|byte| *byte != b'\n').collect(), Codec::Plain);
        }
        check(lines(1000), Codec::Lz4);
        for count in [2000, 10_000, 100_000] {
            check(lines(count), Codec::Pieces);
        }
    }

    /// Any window of a large block is there, and little more is unpacked.
    #[test]
    fn a_window_costs_the_pieces_that_it_touches() {
        let count = 10_000;
        let bytes = lines(count);
        let ends: Vec<usize> = memchr::memchr_iter(b'\n', &bytes).map(|end| end + 1).collect();
        let packed = pack(Bytes::from(bytes.clone()));
        for skip in (0..count).step_by(97) {
            for max_bytes in [1, 1000, 70_000] {
                let read = unpack(2, bytes.len() as u64, packed.bytes(), skip as u64, max_bytes).unwrap();
                let skipped = read.skipped as usize;
                assert!(skipped <= skip, "{skipped} of {skip}");
                let start = if skipped == 0 { 0 } else { ends[skipped - 1] };
                let end = start + read.bytes.len();
                assert_eq!(read.bytes, bytes[start..end]);
                assert!(read.bytes.ends_with(b"\n"));
                assert_eq!(read.to_end, end == bytes.len());
                let enough = read.to_end || read.bytes.len() >= max_bytes;
                assert!(enough && read.bytes.len() < max_bytes + 2 * WHOLE_BYTES, "{}", read.bytes.len());
            }
        }
        let end = unpack(2, bytes.len() as u64, packed.bytes(), count as u64, 1).unwrap();
        assert_eq!((end.skipped, end.bytes.len(), end.to_end), (count as u64, 0, true));
    }

    #[test]
    fn damage_is_noticed_and_never_panics() {
        let bytes = Bytes::from(b"{\"seq\":1,\"text\":\"some words some words\"}\n".repeat(40));
        let packed = pack(bytes.clone());
        let good = packed.bytes();
        let read = |codec, raw, bytes: &[u8]| unpack(codec, raw, bytes, 0, usize::MAX);
        assert!(read(7, 10, good).is_err());
        check_damage(1, good, bytes.len() as u64);
        // Pieces of the same, small enough to try every byte of.
        let pieces = [0..bytes.len() / 2, bytes.len() / 2..bytes.len()];
        let two = SCRATCH.with_borrow_mut(|scratch| pack_pieces(&bytes, &pieces, scratch)).unwrap();
        assert_eq!(read(2, bytes.len() as u64, &two).unwrap().bytes, bytes);
        check_damage(2, &two, bytes.len() as u64);
    }

    fn check_damage(codec: i64, good: &[u8], size: u64) {
        let read = |raw, bytes: &[u8]| unpack(codec, raw, bytes, 0, usize::MAX);
        for raw in [0, 1, size - 1, size + 1, u64::MAX] {
            assert!(read(raw, good).is_err(), "{raw}");
        }
        for cut in 0..good.len() {
            assert!(read(size, &good[..cut]).is_err(), "{cut}");
        }
        for at in 0..good.len() {
            for flip in [1, 0x80, 0xff] {
                let mut bad = good.to_vec();
                bad[at] ^= flip;
                // A flipped literal cannot be told from a good one; anything else is an error.
                if let Ok(read) = read(size, &bad) {
                    assert_eq!(read.bytes.len() as u64, size);
                }
            }
        }
    }
}
