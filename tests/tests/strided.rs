//! Strided put, get and accumulate against a plain reference, on random shapes of every depth.

use armci_core::{Error, GlobalPtr, Strided, World};
use tests::matrix;

const ELEMENTS: usize = 40_000;
const MAX_LEVELS: usize = 7;

/// A shape whose patches fit `ELEMENTS` on both sides.
#[derive(Debug)]
struct Shape {
    counts: Vec<usize>,
    local: Vec<usize>,
    remote: Vec<usize>,
}

impl Shape {
    fn random(random: &mut fastrand::Rng) -> Self {
        loop {
            let levels = random.usize(..=MAX_LEVELS);
            let most = [9, 300, 30, 9, 5, 4, 3, 2][levels];
            let counts: Vec<usize> = (0..=levels)
                .map(|_| {
                    // Empty patches, but rarely.
                    let least = usize::from(random.u8(..) > 8);
                    random.usize(least..most)
                })
                .collect();
            let mut strides = || {
                let mut extent = counts[0];
                let mut strides = Vec::new();
                for count in &counts[1..] {
                    let stride = extent + random.usize(..4);
                    strides.push(stride);
                    extent = stride * count.max(&1);
                }
                strides
            };
            let shape = Shape { local: strides(), remote: strides(), counts };
            if shape.span(&shape.local) < ELEMENTS && shape.span(&shape.remote) < ELEMENTS {
                return shape;
            }
        }
    }

    fn strided(&self) -> Strided<'_> {
        Strided { counts: &self.counts, local: &self.local, remote: &self.remote }
    }

    fn span(&self, strides: &[usize]) -> usize {
        let reach = self.counts[1..].iter().zip(strides).map(|(count, stride)| count.saturating_sub(1) * stride);
        reach.sum::<usize>() + self.counts[0]
    }

    /// All pairs of (local, remote) elements, by the definition.
    fn pairs(&self) -> Vec<(usize, usize)> {
        let mut pairs: Vec<(usize, usize)> = (0..self.counts[0]).map(|at| (at, at)).collect();
        for level in 0..self.local.len() {
            let below = std::mem::take(&mut pairs);
            for index in 0..self.counts[level + 1] {
                let shift = |(local, remote): &(usize, usize)| {
                    (local + index * self.local[level], remote + index * self.remote[level])
                };
                pairs.extend(below.iter().map(shift));
            }
        }
        pairs
    }
}

fn whole(world: &World, from: GlobalPtr<f64>) -> Vec<f64> {
    let mut all = vec![0.0; ELEMENTS];
    world.get(from, &mut all).unwrap();
    all
}

#[test]
fn random_patches_agree_with_the_reference() {
    matrix(|world| {
        let (me, size) = (world.rank(), world.size());
        let region = world.allocate(8 * ELEMENTS).unwrap();
        let right = region.at::<f64>((me + 1) % size, 0);
        let mut random = fastrand::Rng::with_seed(17 + me as u64);
        let source: Vec<f64> = (0..ELEMENTS).map(|index| (index + me * ELEMENTS) as f64).collect();
        for round in 0..25 {
            let shape = Shape::random(&mut random);
            let place = right.add(random.usize(..ELEMENTS - shape.span(&shape.remote)));
            let shift = place_of(place) - place_of(right);

            let mut expected = whole(world, right);
            match round % 3 {
                0 => {
                    world.put_strided(&source, place, &shape.strided()).unwrap();
                    shape.pairs().iter().for_each(|(local, remote)| expected[shift + remote] = source[*local]);
                }
                1 => {
                    world.accumulate_strided(3.0, &source, place, &shape.strided()).unwrap();
                    shape.pairs().iter().for_each(|(local, remote)| expected[shift + remote] += 3.0 * source[*local]);
                }
                _ => {
                    let mut got = source.clone();
                    let mut expected_here = source.clone();
                    world.get_strided(place, &mut got, &shape.strided()).unwrap();
                    shape.pairs().iter().for_each(|(local, remote)| expected_here[*local] = expected[shift + remote]);
                    assert_eq!(got, expected_here, "get {shape:?}");
                }
            }
            // Only this rank writes there, and a get sees its own earlier writes.
            assert_eq!(whole(world, right), expected, "round {round}: {shape:?} at {shift}");
        }
        world.free(region).unwrap();
    });
}

fn place_of(place: GlobalPtr<f64>) -> usize {
    let text = format!("{place:?}");
    let byte: usize = text.trim_end_matches(')').rsplit(' ').next().unwrap().parse().unwrap();
    byte / 8
}

#[test]
fn shapes_that_contradict_themselves_are_refused() {
    matrix(|world| {
        let region = world.allocate(8 * 100).unwrap();
        let place = region.at::<f64>(0, 0);
        let source = [0.0; 100];
        let refused = |counts: &[usize], local: &[usize], remote: &[usize]| {
            world.put_strided(&source, place, &Strided { counts, local, remote }).unwrap_err()
        };
        assert!(matches!(refused(&[1, 2], &[3], &[]), Error::Shape(_)));
        assert!(matches!(refused(&[1], &[3], &[3]), Error::Shape(_)));
        assert!(matches!(refused(&[2; 9], &[2; 8], &[2; 8]), Error::Shape(_)), "eight levels");
        let message = refused(&[10, 11], &[10], &[5]).to_string();
        assert!(message.contains("880") && message.contains("800"), "{message}");
        assert!(matches!(refused(&[1, 3], &[1], &[50]), Error::Bounds { .. }));
        assert!(matches!(refused(&[1, usize::MAX], &[1], &[1 << 60]), Error::Shape(_)), "no wrap-around");
        // Strides of zero make the span small, and the number of elements is still too large.
        assert!(matches!(refused(&[1, 1 << 40, 1 << 40], &[0, 0], &[0, 0]), Error::Shape(_)));
        assert!(matches!(refused(&[8, 1 << 62], &[0], &[0]), Error::Shape(_)));
        world.barrier().unwrap();
        world.free(region).unwrap();
    });
}
