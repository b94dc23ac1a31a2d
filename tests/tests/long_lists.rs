//! Vector transfers between nodes that go as long messages, against a plain reference: segments of all lengths, in order
//! and in none, beside each other and on top of each other.

use std::time::Duration;

use armci_core::{BULK_BYTES, GlobalPtr, Region, STAGING_BYTES, Segment, Segments, World};
use fastrand::Rng;
use tests::Ranks;

/// Words of a part, of a staging chunk and of a long buffer.
const WORDS: usize = 5 * LONG + LONG / 2;
const CHUNK: usize = STAGING_BYTES / 8;
const LONG: usize = BULK_BYTES / 8;

/// How the segments of a shape lie at their target.
#[derive(Debug, Clone, Copy)]
enum Lie {
    /// One behind the other, with gaps.
    Ascending,
    /// The same from the end on.
    Descending,
    /// Beside each other, in no order.
    Shuffled,
    /// Anywhere, so that many overlap.
    Anywhere,
}

/// Segments of `count` words: where each begins here, and there.
fn shape(random: &mut Rng, count: usize, lie: Lie) -> (Vec<usize>, Vec<usize>) {
    let gap = random.usize(..3);
    let most = WORDS / (count + gap);
    let segments = random.usize(most / 2..=most);
    let mut remote: Vec<usize> = (0..segments).map(|segment| segment * (count + gap)).collect();
    match lie {
        Lie::Ascending => (),
        Lie::Descending => remote.reverse(),
        Lie::Shuffled => random.shuffle(&mut remote),
        Lie::Anywhere => remote.iter_mut().for_each(|at| *at = random.usize(..=WORDS - count)),
    }
    let mut local: Vec<usize> = (0..segments).map(|segment| segment * count).collect();
    random.shuffle(&mut local);
    (local, remote)
}

/// Puts, accumulates and gets segments of each length and lie, and holds what is there, and what came, against a model.
fn agree(world: &World, counts: &[usize]) {
    let (me, size) = (world.rank(), world.size());
    let mut random = Rng::with_seed(41 + me as u64);
    let region = world.allocate_filled(WORDS, 0i64).unwrap();
    for (round, count) in counts.iter().copied().enumerate() {
        let target = (me + 1 + round % (size - 1)) % size;
        world.barrier().unwrap();
        let mut model = vec![0; WORDS];
        world.put(&model, region.at(target, 0)).unwrap();
        for lie in [Lie::Ascending, Lie::Descending, Lie::Shuffled, Lie::Anywhere] {
            let (local, remote) = shape(&mut random, count, lie);
            let places: Vec<_> = remote.iter().map(|at| region.at::<i64>(target, *at)).collect();
            let segments = Segments { count, local: &local, remote: &places };
            let pairs = || {
                let starts = local.iter().zip(&remote);
                starts.flat_map(move |(local, remote)| (0..count).map(move |at| (local + at, remote + at)))
            };
            let source: Vec<i64> = (0..WORDS).map(|_| random.i64(-1000..1000)).collect();
            world.put_vector(&source, &segments).unwrap();
            pairs().for_each(|(here, there)| model[there] = source[here]);
            world.accumulate_vector(3, &source, &segments).unwrap();
            pairs().for_each(|(here, there)| model[there] += 3 * source[here]);
            // With handles: the get sees what was added before it, and not what is put behind it.
            let added = world.accumulate_vector_nb(-1, source.clone(), &segments).unwrap();
            pairs().for_each(|(here, there)| model[there] -= source[here]);
            let got = world.get_vector_nb(vec![7; WORDS], &segments).unwrap();
            let behind = world.put_nb(vec![round as i64], places[0]).unwrap();
            let mut expected = vec![7; WORDS];
            pairs().for_each(|(here, there)| expected[here] = model[there]);
            model[remote[0]] = round as i64;
            assert!(got.wait().unwrap() == expected, "{lie:?} of {count}: a get behind accumulates");
            drop(added.wait().unwrap());
            behind.wait().unwrap();
            let mut found = vec![7; WORDS];
            world.get_vector(&mut found, &segments).unwrap();
            pairs().for_each(|(here, there)| expected[here] = model[there]);
            assert!(found == expected, "{lie:?} of {count}: a get behind a put");
            world.get(region.at(target, 0), &mut found).unwrap();
            assert!(found == model, "{lie:?} of {count}: all of the part");
        }
    }
    world.barrier().unwrap();
    world.free(region).unwrap();
}

/// Segments of all lengths and of two regions in one call; later ones lie on top of earlier ones.
fn mixed(world: &World, rounds: usize) {
    const BYTES: usize = 700_000;
    let (me, size) = (world.rank(), world.size());
    let regions: [Region; 2] = [0, 1].map(|_| world.allocate_filled(BYTES, 0u8).unwrap());
    let target = (me + 1) % size;
    let mut random = Rng::with_seed(3 + me as u64);
    let mut model = [vec![0u8; BYTES], vec![0u8; BYTES]];
    for round in 0..rounds {
        let mut sent: Vec<u8> = (0..BYTES).map(|_| random.u8(..)).collect();
        let mut back = vec![0u8; BYTES];
        let mut all = Vec::new();
        let (mut at, mut which) = (0, 0);
        while at < BYTES {
            let most = [1, 40, 40, 3_000, 60_000, 300_000][random.usize(..6)];
            // Some of one length and region in a row.
            let count = random.usize(..=most);
            which = if random.u8(..) < 40 { 1 - which } else { which };
            for _ in 0..random.usize(..300) {
                let count = count.min(BYTES - at);
                let there = if round % 2 == 0 { at } else { random.usize(..=BYTES - count) };
                all.push((at, which, there, count));
                at += count;
                if at >= BYTES || count > 3_000 {
                    break;
                }
            }
        }
        let regions = &regions;
        let segments = |base: *mut u8| {
            all.iter().map(move |(at, which, there, count)| {
                let remote: GlobalPtr<u8> = regions[*which].at(target, *there);
                Segment { local: base.wrapping_add(*at), remote, count: *count }
            })
        };
        #[expect(unsafe_code, reason = "what is tested takes raw pointers")]
        // SAFETY: LOCAL-SEGMENTS: they are pieces of buffers that are ours for the calls.
        unsafe {
            world.put_vector_from(segments(sent.as_mut_ptr())).unwrap();
            world.get_vector_into(segments(back.as_mut_ptr())).unwrap();
        }
        for (at, which, there, count) in &all {
            model[*which][*there..][..*count].copy_from_slice(&sent[*at..][..*count]);
        }
        for (at, which, there, count) in &all {
            assert!(back[*at..][..*count] == model[*which][*there..][..*count], "round {round}: what came back");
        }
        for (region, model) in regions.iter().zip(&model) {
            let mut found = vec![1u8; BYTES];
            world.get(region.at(target, 0), &mut found).unwrap();
            assert!(found == *model, "round {round}: all of the part");
        }
    }
    world.barrier().unwrap();
    regions.into_iter().for_each(|region| world.free(region).unwrap());
}

/// Lengths around what fills a chunk and a long buffer, and short ones of which many do.
const COUNTS: [usize; 10] = [1, 2, 7, 100, 1_000, CHUNK - 2, CHUNK, LONG - 2, LONG + 1, 2 * LONG + 77];

#[test]
fn segments_of_one_length_agree_with_the_reference() {
    for (ranks, nodes, progress) in [(2, 2, "thread"), (2, 2, "none"), (4, 2, "thread"), (3, 3, "none")] {
        Ranks::new(ranks).nodes(nodes).env("ARMCI_PROGRESS", progress).run(|world| agree(world, &COUNTS));
    }
}

#[test]
fn segments_of_all_lengths_agree_with_the_reference() {
    for (ranks, progress) in [(2, "thread"), (2, "none"), (3, "thread")] {
        Ranks::new(ranks).nodes(ranks).env("ARMCI_PROGRESS", progress).run(|world| mixed(world, 6));
    }
}

#[test]
fn nothing_changes_on_an_odd_fabric() {
    for (fabric, faults) in [
        ("shm", ""),
        ("shm", "again=60,duplicate=50"),
        ("tcp", "again=60,delay=100"),
        ("tcp", "wants=local+allocated+endpoint"),
        ("tcp", "lacks=delivery"),
        ("tcp", "overtake=50,delay=100"),
    ] {
        for progress in ["thread", "none"] {
            let job = Ranks::new(3).nodes(3).env("ARMCI_FABRIC", fabric).env("ARMCI_PROGRESS", progress);
            job.env("ARMCI_FABRIC_FAULTS", faults).timeout(Duration::from_secs(150)).run(|world| {
                agree(world, &[1, 100, CHUNK, LONG + 1]);
                mixed(world, 2);
            });
        }
    }
}
