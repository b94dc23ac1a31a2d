//! Vector put, get and accumulate against a plain reference, on random segments; a bad one anywhere stops all.

use armci_core::{Accumulate, Error, Region, Segment, Segments, World};
use num_complex::Complex64;
use tests::matrix;

const ELEMENTS: usize = 20_000;

/// Segments between a buffer and a part of `ELEMENTS` each, in no order and perhaps overlapping there.
#[derive(Debug)]
struct Shape {
    count: usize,
    local: Vec<usize>,
    remote: Vec<usize>,
}

impl Shape {
    /// Local segments do not overlap if `apart`: what a get would leave there is then known.
    fn random(random: &mut fastrand::Rng, apart: bool) -> Self {
        // Nothing, words, what fills a message a few times over, and what does not fit one.
        let count = [0, 1, 1, 2, 3, 7, 100, 1_000, 2_046, 2_047, 5_000][random.usize(..11)];
        let most = if count <= 3 { 3_000 } else { ELEMENTS / count };
        let segments = if random.u8(..) < 20 { 0 } else { random.usize(1..=most) };
        let mut local: Vec<usize> =
            (0..segments).map(|index| if apart { index * count } else { random.usize(..=ELEMENTS - count) }).collect();
        random.shuffle(&mut local);
        let remote = (0..segments).map(|_| random.usize(..=ELEMENTS - count)).collect();
        Shape { count, local, remote }
    }

    /// All pairs of (local, remote) elements, in order.
    fn pairs(&self) -> impl Iterator<Item = (usize, usize)> {
        let starts = self.local.iter().zip(&self.remote);
        starts.flat_map(|(local, remote)| (0..self.count).map(move |at| (local + at, remote + at)))
    }
}

fn whole<T: Accumulate>(world: &World, region: &Region, rank: usize) -> Vec<T> {
    let mut all = vec![T::zeroed(); ELEMENTS];
    world.get(region.at(rank, 0), &mut all).unwrap();
    all
}

#[test]
fn random_segments_agree_with_the_reference() {
    matrix(|world| {
        let (me, size) = (world.rank(), world.size());
        let region = world.allocate(8 * ELEMENTS).unwrap();
        let right = (me + 1) % size;
        let mut random = fastrand::Rng::with_seed(23 + me as u64);
        let source: Vec<f64> = (0..ELEMENTS).map(|index| (index + me * ELEMENTS) as f64).collect();
        world.put(&source, region.at(right, 0)).unwrap();
        for round in 0..36 {
            let shape = Shape::random(&mut random, round % 3 == 2);
            let places: Vec<_> = shape.remote.iter().map(|at| region.at::<f64>(right, *at)).collect();
            let segments = Segments { count: shape.count, local: &shape.local, remote: &places };
            let mut expected: Vec<f64> = whole(world, &region, right);
            match round % 3 {
                0 => {
                    world.put_vector(&source, &segments).unwrap();
                    // Where targets overlap the later segment stays.
                    shape.pairs().for_each(|(local, remote)| expected[remote] = source[local]);
                }
                1 => {
                    world.accumulate_vector(3.0, &source, &segments).unwrap();
                    shape.pairs().for_each(|(local, remote)| expected[remote] += 3.0 * source[local]);
                }
                _ => {
                    let mut got = source.clone();
                    let mut expected_here = source.clone();
                    world.get_vector(&mut got, &segments).unwrap();
                    shape.pairs().for_each(|(local, remote)| expected_here[local] = expected[remote]);
                    assert!(got == expected_here, "round {round}: get of {} x {}", places.len(), shape.count);
                }
            }
            // Only this rank writes there, and a get sees its own earlier writes.
            let there: Vec<f64> = whole(world, &region, right);
            assert!(there == expected, "round {round}: {} x {}", places.len(), shape.count);
        }
        world.free(region).unwrap();
    });
}

/// Segments of all lengths and of two regions in one call, to bytes anywhere, out of and into one's own part.
#[test]
fn raw_segments_may_differ_and_lie_in_the_window() {
    matrix(|world| {
        let (me, size) = (world.rank(), world.size());
        let regions = [world.allocate(100_000).unwrap(), world.allocate(100_000).unwrap()];
        let mine = world.allocate(200_000).unwrap();
        let right = (me + 1) % size;
        let mut random = fastrand::Rng::with_seed(5 + me as u64);
        let sent: Vec<u8> = (0..100_000).map(|_| random.u8(..)).collect();
        world.put(&sent, mine.at(me, 0)).unwrap();
        world.fence(me).unwrap();
        let (base, _) = world.local_part(&mine).unwrap();
        let mut all = Vec::new();
        let mut at = 0;
        while at < sent.len() {
            let most = [1, 9, 9, 300, 40_000][random.usize(..5)];
            let count = random.usize(..=most).min(sent.len() - at);
            let remote = regions[random.usize(..2)].at::<u8>(right, at);
            all.push(Segment { local: base.wrapping_add(at), remote, count });
            at += count;
        }
        random.shuffle(&mut all);
        // The segments are inside this rank's part, which nobody else touches, and disjoint.
        #[expect(unsafe_code, reason = "what is tested takes raw pointers")]
        // SAFETY: LOCAL-SEGMENTS, as said.
        unsafe {
            world.put_vector_from(all.iter().copied()).unwrap();
            let back = |segment: &Segment<u8>| Segment { local: segment.local.wrapping_add(100_000), ..*segment };
            world.get_vector_into(all.iter().map(back)).unwrap();
        }
        let mut back = vec![0u8; 100_000];
        world.get(mine.at(me, 100_000), &mut back).unwrap();
        assert!(back == sent);
        world.free(mine).unwrap();
        for region in regions {
            world.free(region).unwrap();
        }
    });
}

/// Everybody adds to the same, often overlapping, segments of rank 0.
fn all_add<T: Accumulate + std::fmt::Debug>(world: &World, one: T, two: T, number: impl Fn(usize) -> T) {
    let region = world.allocate(size_of::<T>() * ELEMENTS).unwrap();
    world.put(&[T::zeroed()].repeat(ELEMENTS), region.at(world.rank(), 0)).unwrap();
    world.barrier().unwrap();
    let ones = [one].repeat(ELEMENTS);
    let mut hits = [0].repeat(ELEMENTS);
    let mut random = fastrand::Rng::with_seed(9);
    for _ in 0..8 {
        let shape = Shape::random(&mut random, false);
        let places: Vec<_> = shape.remote.iter().map(|at| region.at::<T>(0, *at)).collect();
        let segments = Segments { count: shape.count, local: &shape.local, remote: &places };
        world.accumulate_vector(two, &ones, &segments).unwrap();
        shape.pairs().for_each(|(_, remote)| hits[remote] += 2 * world.size());
    }
    world.barrier().unwrap();
    let sums: Vec<T> = whole(world, &region, 0);
    assert!(sums.iter().zip(&hits).all(|(sum, hits)| *sum == number(*hits)));
    world.free(region).unwrap();
}

#[test]
fn accumulates_of_all_ranks_are_exact() {
    matrix(|world| {
        all_add(world, 1i32, 2, |sum| sum as i32);
        all_add(world, 1f64, 2.0, |sum| sum as f64);
        all_add(world, Complex64::new(1.0, 1.0), Complex64::new(2.0, 0.0), |sum| {
            Complex64::new(sum as f64, sum as f64)
        });
    });
}

/// A put to a place is seen by a later vector get, whichever path either takes.
#[test]
fn order_is_kept_across_a_change_of_path() {
    use armci_core::config::{Path, Protocol};
    matrix(|world| {
        let region = world.allocate(8 * 100).unwrap();
        let right = (world.rank() + 1) % world.size();
        let places = [region.at::<i64>(right, 70), region.at(right, 3)];
        let segments = Segments { count: 1, local: &[0, 1], remote: &places };
        for round in 0..200 {
            for (put, get) in [(Path::Am, Path::Rma), (Path::Rma, Path::Am)] {
                world.set_protocol(Protocol { put, get, ..world.protocol() });
                world.put_vector(&[round, -round], &segments).unwrap();
                let mut back = [0; 2];
                world.get_vector(&mut back, &segments).unwrap();
                assert_eq!(back, [round, -round]);
            }
        }
        world.free(region).unwrap();
    });
}

#[test]
fn a_bad_segment_anywhere_is_an_error_and_nothing_is_written() {
    matrix(|world| {
        let (me, size) = (world.rank(), world.size());
        let region = world.allocate(8 * 100).unwrap();
        let freed = world.allocate(8 * 100).unwrap();
        let dangling = freed.at::<f64>((me + 1) % size, 0);
        world.free(freed).unwrap();
        let right = (me + 1) % size;
        world.put(&[7.0; 100], region.at(right, 0)).unwrap();
        let source = [1.0; 10];
        for at in 0..5 {
            let good: Vec<_> = (0..5).map(|index| region.at::<f64>(right, 10 * index)).collect();
            let local = [0, 2, 4, 6, 8];
            let with = |bad| {
                let mut places = good.clone();
                places[at] = bad;
                places
            };
            let refused = |places: &[_], local: &[usize]| {
                let segments = Segments { count: 2, local, remote: places };
                let mut target = [5.0; 10];
                let get = world.get_vector(&mut target, &segments).unwrap_err().to_string();
                assert_eq!(target, [5.0; 10]);
                let accumulate = world.accumulate_vector(1.0, &source, &segments).unwrap_err().to_string();
                assert_eq!(get, accumulate);
                match world.put_vector(&source, &segments).unwrap_err() {
                    Error::Segment { segment, error } => {
                        assert_eq!(accumulate, format!("segment {segment}: {error}"));
                        (segment, *error)
                    }
                    other => panic!("{other}"),
                }
            };
            let (segment, error) = refused(&with(region.at(right, 99)), &local);
            assert!(segment == at && matches!(error, Error::Bounds { bytes: 16, .. }), "{error}");
            let (segment, error) = refused(&with(region.at(right, usize::MAX)), &local);
            assert!(segment == at && matches!(error, Error::Bounds { .. }), "{error}");
            let (segment, error) = refused(&with(dangling), &local);
            assert!(segment == at && matches!(error, Error::NoRegion { .. }), "{error}");
            // The first place says which rank it is.
            let (segment, error) = refused(&with(region.at(size, 0)), &local);
            assert!(segment == at && matches!(error, Error::Rank { .. } | Error::Argument(_)), "{error}");
            if size > 1 {
                let (segment, error) = refused(&with(region.at(me, 0)), &local);
                assert!(segment == at.max(1) && matches!(error, Error::Argument(_)), "{error}");
            }
            for beyond in [9, usize::MAX] {
                let mut local = local;
                local[at] = beyond;
                let (segment, error) = refused(&good, &local);
                assert!(segment == at && matches!(error, Error::Argument(_)), "{error}");
            }
            let odd = with(region.at::<u8>(right, 4).cast());
            let segments = Segments { count: 2, local: &local, remote: &odd };
            let error = world.accumulate_vector(1.0, &source, &segments).unwrap_err();
            let Error::Segment { segment, error } = error else { panic!("{error}") };
            assert!(segment == at && matches!(*error, Error::Misaligned { .. }), "{error}");
            let segments = Segments { count: 2, local: &local[..4], remote: &good };
            assert!(matches!(world.put_vector(&source, &segments), Err(Error::Argument(_))));
        }
        world.put_vector(&source, &Segments { count: 2, local: &[], remote: &[] }).unwrap();
        // Nothing, even at the very end.
        world.put_vector(&source, &Segments { count: 0, local: &[10], remote: &[region.at(right, 100)] }).unwrap();
        let mut there = [0.0; 100];
        world.get(region.at(right, 0), &mut there).unwrap();
        assert_eq!(there, [7.0; 100]);
        world.free(region).unwrap();
    });
}
