//! Providers that want the own side's memory registered: long puts and gets go straight from and to it, and nothing stays
//! registered.

use armci_core::{Region, STAGING_BYTES, Strided, World};
use fastrand::Rng;
use tests::Ranks;

/// From here on memory is registered for its transfer.
const FROM: usize = 4 * STAGING_BYTES;
/// Bytes of a part.
const BYTES: usize = 2 << 20;

/// Runs `body` over fabrics that want that, and one that does not.
fn over_fabrics(body: impl Fn(&World, bool)) {
    for (faults, wants) in [
        ("wants=local", true),
        ("wants=local+allocated+endpoint,again=40", true),
        ("wants=local,largest=100000,delay=100", true),
        ("again=20", false),
    ] {
        for (ranks, progress) in [(2, "thread"), (3, "none")] {
            let job = Ranks::new(ranks).nodes(ranks).env("ARMCI_FABRIC", "tcp").env("ARMCI_PROTOCOL", "rma");
            let job = job.env("ARMCI_FABRIC_FAULTS", faults).env("ARMCI_PROGRESS", progress);
            job.run(|world| body(world, wants));
        }
    }
}

/// Lengths around the threshold, and others.
fn length(random: &mut Rng) -> usize {
    match random.u8(..4) {
        0 => FROM - 2 + random.usize(..4),
        1 => random.usize(1..=STAGING_BYTES + 1),
        2 => random.usize(FROM..BYTES),
        _ => random.usize(1..FROM),
    }
}

/// How often memory was registered, once none is.
fn registrations(world: &World) -> u64 {
    let statistics = world.statistics();
    assert_eq!(statistics.registered, 0, "something stays registered");
    statistics.registrations
}

#[test]
fn transfers_of_all_lengths_arrive_and_nothing_stays_registered() {
    over_fabrics(|world, wants| {
        let region: Region = world.allocate_filled(BYTES, 0u8).unwrap();
        let target = (world.rank() + 1) % world.size();
        let mut random = Rng::with_seed(77 + world.rank() as u64);
        let mut model = vec![0u8; BYTES];
        for round in 0..60 {
            let before = registrations(world);
            let len = length(&mut random);
            let at = random.usize(..=BYTES - len);
            let data: Vec<u8> = (0..len).map(|_| random.u8(..)).collect();
            let place = region.at::<u8>(target, at);
            if round % 2 == 0 {
                world.put(&data, place).unwrap();
            } else {
                let put = world.put_nb(data.clone(), place).unwrap();
                assert!(put.wait().unwrap() == data);
            }
            let after = registrations(world);
            assert_eq!(after != before, wants && len >= FROM, "a put of {len} bytes");
            model[at..at + len].copy_from_slice(&data);
            // What is around it, too.
            let (begin, end) = (at.saturating_sub(9), (at + len + 9).min(BYTES));
            let place = region.at::<u8>(target, begin);
            let mut back = vec![1; end - begin];
            if round % 3 == 0 {
                world.get(place, &mut back).unwrap();
            } else {
                back = world.get_nb(place, back).unwrap().wait().unwrap();
            }
            assert!(back == model[begin..end], "round {round}: {len} bytes at {at}");
            assert_eq!(registrations(world) != after, wants && end - begin >= FROM, "a get of {} bytes", end - begin);
        }
        world.barrier().unwrap();
        world.free(region).unwrap();
    });
}

#[test]
fn long_rows_and_many_handles_arrive_and_nothing_stays_registered() {
    over_fabrics(|world, wants| {
        let region: Region = world.allocate_filled(BYTES, 0u8).unwrap();
        let target = (world.rank() + 1) % world.size();
        let mut random = Rng::with_seed(7 + world.rank() as u64);
        for row in [FROM - 1, FROM, FROM + 1, 150_000] {
            let rows = 6;
            let shape = Strided { counts: &[row, rows], local: &[row + 5], remote: &[row + 11] };
            let data: Vec<u8> = (0..rows * (row + 5)).map(|_| random.u8(..)).collect();
            let place = region.at::<u8>(target, random.usize(..1000));
            let before = registrations(world);
            world.put_strided(&data, place, &shape).unwrap();
            let mut back = vec![0; data.len()];
            world.get_strided(place, &mut back, &shape).unwrap();
            let handle = world.get_strided_nb(place, vec![0; data.len()], &shape).unwrap();
            let again = handle.wait().unwrap();
            for row_at in (0..rows).map(|number| number * (row + 5)) {
                assert!(back[row_at..row_at + row] == data[row_at..row_at + row], "rows of {row}");
                assert!(again[row_at..row_at + row] == data[row_at..row_at + row], "rows of {row}, with a handle");
            }
            let expected = if wants && row >= FROM { 3 * rows as u64 } else { 0 };
            let registered = registrations(world) - before;
            assert!(
                if expected == 0 { registered == 0 } else { registered >= expected },
                "{registered}, of rows of {row}"
            );
        }
        // More than there are slots, all under way at once, and one that is forgotten: the last fence is for that.
        let data: Vec<u8> = (0..FROM).map(|_| random.u8(..)).collect();
        world.put(&data, region.at(target, 0)).unwrap();
        let gets: Vec<_> = (0..40).map(|_| world.get_nb(region.at(target, 0), vec![0u8; FROM]).unwrap()).collect();
        for got in gets {
            assert!(got.wait().unwrap() == data);
        }
        registrations(world);
        std::mem::forget(world.put_nb(data.clone(), region.at(target, FROM)).unwrap());
        world.fence(target).unwrap();
        registrations(world);
        world.barrier().unwrap();
        world.free(region).unwrap();
    });
}
