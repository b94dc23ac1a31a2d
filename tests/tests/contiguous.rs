//! Put and get: what was put is what is got, anywhere, on every path; what is outside is refused and untouched.

use armci_core::Error;
use tests::matrix;

/// Lengths around every limit of the copy routines and of a message: empty, inline, one chunk, many chunks.
const LENGTHS: [usize; 16] = [0, 1, 7, 8, 9, 63, 64, 65, 71, 72, 73, 1000, 16 << 10, (16 << 10) + 1, 100_000, 1 << 20];

fn pattern(seed: usize, len: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed as u64);
    (0..len).map(|_| random.u8(..)).collect()
}

#[test]
fn what_was_put_is_what_is_got() {
    matrix(|world| {
        let (me, size) = (world.rank(), world.size());
        let region = world.allocate((1 << 20) + 64).unwrap();
        let right = (me + 1) % size;
        for (case, len) in LENGTHS.into_iter().enumerate() {
            for offset in [0, 1, 8, 13] {
                let sent = pattern(case + 100 * offset + 1000 * me, len);
                world.put(&sent, region.at(right, offset)).unwrap();
                world.barrier().unwrap();
                let mut here = vec![0u8; len];
                world.get(region.at(me, offset), &mut here).unwrap();
                let left = (me + size - 1) % size;
                assert_eq!(here, pattern(case + 100 * offset + 1000 * left, len), "{len} bytes at {offset}");
                // And from farther away.
                let far = (me + 2) % size;
                let mut there = vec![0u8; len];
                world.get(region.at(far, offset), &mut there).unwrap();
                assert_eq!(there, pattern(case + 100 * offset + 1000 * ((far + size - 1) % size), len));
                world.barrier().unwrap();
            }
        }
        world.free(region).unwrap();
    });
}

#[test]
fn neighbours_of_a_put_stay_as_they_are() {
    matrix(|world| {
        let (me, size) = (world.rank(), world.size());
        let region = world.allocate(64 * size).unwrap();
        world.put(&vec![0xaau8; 64 * size], region.at(me, 0)).unwrap();
        world.barrier().unwrap();
        // Every rank writes its own 62 bytes into rank 0; one byte on either side is nobody's.
        world.put(&[me as u8; 62], region.at(0, 64 * me + 1)).unwrap();
        world.barrier().unwrap();
        let mut all = vec![0u8; 64 * size];
        world.get(region.at(0, 0), &mut all).unwrap();
        for (rank, block) in all.chunks(64).enumerate() {
            assert_eq!((block[0], block[63]), (0xaa, 0xaa));
            assert!(block[1..63].iter().all(|byte| *byte == rank as u8));
        }
        world.free(region).unwrap();
    });
}

/// Readers see one of the two values that a writer puts by turns, never a mixture.
#[test]
fn aligned_words_never_tear() {
    matrix(|world| {
        let region = world.allocate(64).unwrap();
        world.put(&[0u64; 8], region.at(world.rank(), 0)).unwrap();
        world.barrier().unwrap();
        let mut eight = [0u64; 8];
        for round in 0..3_000 {
            if world.rank() == 0 {
                let value = if round % 2 == 0 { u64::MAX } else { 0 };
                world.put_value(value, region.at(0, 3)).unwrap();
                world.put(&[value; 8], region.at(0, 0)).unwrap();
            } else {
                let value = world.get_value::<u64>(region.at(0, 3)).unwrap();
                assert!(value == 0 || value == u64::MAX, "{value:#x}");
                world.get(region.at(0, 0), &mut eight).unwrap();
                assert!(eight.iter().all(|value| *value == 0 || *value == u64::MAX), "{eight:x?}");
            }
        }
        world.barrier().unwrap();
        world.free(region).unwrap();
    });
}

#[test]
fn parts_may_differ_in_length_and_be_empty() {
    matrix(|world| {
        let (me, size) = (world.rank(), world.size());
        let region = world.allocate(100 * me).unwrap();
        for rank in 0..size {
            if rank > 0 {
                world.put(&[me as u8], region.at(rank, 100 * rank - 1 - me)).unwrap();
            }
            let past_the_end = world.put(&[0u8], region.at(rank, 100 * rank));
            assert!(
                matches!(past_the_end, Err(Error::Bounds { rank: r, len, .. }) if r == rank && len == 100 * rank as u64),
                "{past_the_end:?}"
            );
            // Nothing is no transfer out of bounds, even at the very end.
            world.put(&[0u8; 0], region.at(rank, 100 * rank)).unwrap();
        }
        world.free(region).unwrap();
    });
}

#[test]
fn bad_arguments_are_errors_and_write_nothing() {
    matrix(|world| {
        let region = world.allocate(64).unwrap();
        world.put(&[7u8; 64], region.at(world.rank(), 0)).unwrap();
        world.barrier().unwrap();

        let nobody = world.size() + 3;
        assert!(matches!(world.put(&[0u8], region.at(nobody, 0)), Err(Error::Rank { .. })));
        assert!(matches!(world.fence(nobody), Err(Error::Rank { .. })));
        let message = world.get(region.at(0, 60), &mut [0u8; 5]).unwrap_err().to_string();
        assert!(message.contains("60..65") && message.contains("64 bytes"), "{message}");
        assert!(world.put(&[0u8; 65], region.at(0, 0)).is_err());
        assert!(world.put(&[0u64], region.at(0, usize::MAX)).is_err());
        assert!(matches!(world.fetch_add(region.at::<u8>(0, 4).cast::<i64>(), 1), Err(Error::Misaligned { .. })));
        assert!(matches!(
            world.accumulate(1.0, &[1.0], region.at::<u8>(0, 4).cast::<f64>()),
            Err(Error::Misaligned { .. })
        ));
        assert!(world.fetch_add(region.at::<i64>(0, 8), 1).is_err());

        world.barrier().unwrap();
        let mut here = [0u8; 64];
        world.get(region.at(world.rank(), 0), &mut here).unwrap();
        assert_eq!(here, [7; 64]);

        let dangling = region.at::<u8>(0, 0);
        world.free(region).unwrap();
        assert!(matches!(world.put(&[1u8], dangling), Err(Error::NoRegion { .. })));
        let next = world.allocate(64).unwrap();
        assert!(matches!(world.put(&[1u8], dangling), Err(Error::NoRegion { .. })), "the index is in use again");
        world.free(next).unwrap();
    });
}
