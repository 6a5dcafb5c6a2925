//! Blocks as they are stored: LZ4, when that pays.

use std::cell::RefCell;

use bytes::Bytes;
use lz4_flex::block::{CompressTable, compress_into_with_table, decompress, get_maximum_output_size};

/// Shorter blocks stay as they are: a row costs more than what could be saved.
const SHORT_BYTES: usize = 512;
/// An output buffer of this size is kept by a thread; the relay's largest block needs less.
const KEPT_BYTES: usize = 512 << 10;

/// Stored as it is.
const PLAIN: i16 = 0;
/// One block in LZ4's format, without a frame.
const LZ4: i16 = 1;

/// The lines of a block as a row holds them.
#[derive(Debug)]
pub(crate) struct Packed {
    /// The number of how; it is in the table.
    pub(crate) codec: i16,
    pub(crate) bytes: Bytes,
}

/// What a thread needs for compressing; making it anew costs more than a small block.
struct Workshop {
    table: CompressTable,
    large_table: CompressTable,
    out: Vec<u8>,
}

thread_local! {
    static WORKSHOP: RefCell<Workshop> = RefCell::new(Workshop {
        table: CompressTable::small(),
        large_table: CompressTable::large(),
        out: Vec::new(),
    });
}

/// Compresses when an eighth or more is saved. About 0.3 µs for a record of 300 bytes.
pub(crate) fn pack(bytes: Bytes) -> Packed {
    let smaller = (bytes.len() >= SHORT_BYTES).then(|| WORKSHOP.with_borrow_mut(|workshop| workshop.compress(&bytes)));
    match smaller.flatten() {
        Some(smaller) => Packed { codec: LZ4, bytes: smaller },
        None => Packed { codec: PLAIN, bytes },
    }
}

impl Workshop {
    fn compress(&mut self, bytes: &[u8]) -> Option<Bytes> {
        let room = get_maximum_output_size(bytes.len());
        if self.out.len() < room {
            self.out.resize(room, 0);
        }
        // The small table counts positions in 16 bits.
        let table = if bytes.len() < usize::from(u16::MAX) { &mut self.table } else { &mut self.large_table };
        let size = compress_into_with_table(bytes, &mut self.out, table).ok()?;
        let packed = self.out.get(..size).filter(|_| size <= bytes.len() - bytes.len() / 8);
        let packed = packed.map(Bytes::copy_from_slice);
        if self.out.len() > KEPT_BYTES {
            self.out = Vec::new();
        }
        packed
    }
}

/// The lines of a row of `raw` bytes.
///
/// # Errors
///
/// A description of the damage, when `stored` cannot have come from that many bytes.
pub(crate) fn unpack(codec: i16, raw: usize, stored: &[u8]) -> Result<Bytes, String> {
    let bytes = match codec {
        PLAIN => Bytes::copy_from_slice(stored),
        // A byte of LZ4 makes at most 255: a damaged size must not take all memory.
        LZ4 if raw / 255 > stored.len() => return Err(format!("{} bytes cannot hold {raw}", stored.len())),
        LZ4 => decompress(stored, raw).map_err(|e| e.to_string())?.into(),
        other => return Err(format!("unknown codec {other}")),
    };
    if bytes.len() != raw {
        return Err(format!("{} bytes where {raw} were expected", bytes.len()));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: Vec<u8>, codec: i16) {
        let bytes = Bytes::from(bytes);
        let packed = pack(bytes.clone());
        assert_eq!(packed.codec, codec, "{} bytes", bytes.len());
        assert_eq!(unpack(codec, bytes.len(), &packed.bytes), Ok(bytes));
    }

    fn noise(len: usize) -> Vec<u8> {
        let next = |n: &u64| Some(n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        std::iter::successors(Some(1u64), next).map(|n| (n >> 56) as u8).take(len).collect()
    }

    #[test]
    fn what_pays_is_compressed_and_all_comes_back() {
        for len in [0, 1, SHORT_BYTES - 1] {
            check(vec![b'a'; len], PLAIN);
        }
        for len in [SHORT_BYTES, 65_534, 65_535, 65_536, 256 << 10, 3 << 20] {
            check(vec![b'a'; len], LZ4);
            check(noise(len), PLAIN);
        }
    }

    #[test]
    fn damage_is_noticed_and_never_panics() {
        let lines = Bytes::from(b"{\"seq\":1,\"text\":\"some words some words\"}\n".repeat(40));
        let good = pack(lines.clone()).bytes;
        assert!(unpack(7, 10, &good).is_err());
        assert!(unpack(PLAIN, 10, &good).is_err());
        for raw in [0, 1, lines.len() - 1, lines.len() + 1, usize::MAX] {
            assert!(unpack(LZ4, raw, &good).is_err(), "{raw}");
        }
        for cut in 0..good.len() {
            assert!(unpack(LZ4, lines.len(), &good[..cut]).is_err(), "{cut}");
        }
        for at in 0..good.len() {
            let mut bad = good.to_vec();
            bad[at] ^= 0x81;
            // Another literal cannot be told from the right one; anything else is an error.
            if let Ok(read) = unpack(LZ4, lines.len(), &bad) {
                assert_eq!(read.len(), lines.len());
            }
        }
    }
}
