use super::*;
use proptest::prelude::*;

#[test]
fn grids_are_near_square_and_respect_small_arrays() {
    assert_eq!(Distribution::regular(&[100, 100], 4, &[1, 1]).blocks()[..], [2, 2]);
    assert_eq!(Distribution::regular(&[1000, 10], 4, &[1, 1]).blocks()[..], [4, 1]);
    assert_eq!(Distribution::regular(&[10, 10], 4, &[6, 1]).blocks()[..], [1, 4]);
    assert_eq!(Distribution::regular(&[2, 1], 7, &[1, 1]).blocks()[..], [2, 1]);
    assert_eq!(Distribution::regular(&[8, 8, 8], 8, &[1, 1, 1]).blocks()[..], [2, 2, 2]);
    assert_eq!(Distribution::regular(&[0, 5], 3, &[1, 1]).block_on(2).unwrap().shape()[..], [0, 1]);
}

/// A cut of an axis of up to `len` elements, of each kind.
fn any_cut(len: usize) -> impl Strategy<Value = Cut> {
    prop_oneof![
        (0..=len, 1usize..6).prop_map(|(len, pieces)| Cut::even(len, pieces)),
        (0..=len, 1usize..6).prop_map(|(len, size)| Cut::Sized { len, size }),
        prop::collection::vec(0..=len / 3, 1..5).prop_map(|lengths| {
            let mut at = 0;
            let ends = lengths.iter().map(|length| {
                at += length;
                at
            });
            Cut::At(std::iter::once(0).chain(ends).collect())
        }),
    ]
}

fn any_distribution() -> impl Strategy<Value = (Distribution, usize)> {
    let sized = |max: usize| (0..=max, 1usize..6).prop_map(|(len, size)| Cut::Sized { len, size });
    let one_each = (prop::collection::vec(any_cut(9), 1..4), 0usize..3).prop_map(|(cuts, width)| {
        let ghosts = Axes::splat(cuts.len(), width);
        let ranks = cuts.iter().map(Cut::pieces).product::<usize>() + 2;
        (Distribution::new(Axes::from_fn(cuts.len(), |axis| cuts[axis].clone()), Deal::OneEach { ghosts }), ranks)
    });
    let dealt = (prop::collection::vec(sized(9), 1..4), 1usize..6).prop_map(|(cuts, ranks)| {
        (Distribution::new(Axes::from_fn(cuts.len(), |axis| cuts[axis].clone()), Deal::RoundRobin { ranks }), ranks)
    });
    let grid = (prop::collection::vec((sized(9), 1usize..4), 1..4), any::<bool>()).prop_map(|(axes, tiles)| {
        let grid = Axes::from_fn(axes.len(), |axis| axes[axis].1);
        let packing = if tiles { Packing::Tiles } else { Packing::Joined };
        let ranks = grid.iter().product::<usize>() + 1;
        (Distribution::new(Axes::from_fn(axes.len(), |axis| axes[axis].0.clone()), Deal::Grid { grid, packing }), ranks)
    });
    prop_oneof![one_each, dealt, grid]
}

/// Every index of a patch.
fn indices(patch: &Patch) -> Vec<Axes<usize>> {
    let mut found = Vec::new();
    let (start, shape) = (patch.start(), patch.shape());
    let mut at = Axes::splat(patch.ndim(), 0);
    while !patch.is_empty() {
        found.push(Axes::from_fn(at.len(), |axis| start[axis] + at[axis]));
        if !advance(&mut at, &shape) {
            break;
        }
    }
    found
}

proptest! {
    #[test]
    fn every_element_has_one_owner_and_a_place_of_its_own((distribution, ranks) in any_distribution()) {
        let whole = Patch::whole(distribution.shape());
        let mut owners = vec![None; whole.len()];
        for rank in 0..ranks {
            let mut used = vec![false; distribution.elements_on(rank)];
            for (patch, place) in distribution.blocks_on(rank) {
                prop_assert_eq!(place.rank, rank);
                for index in indices(&patch) {
                    prop_assert_eq!(distribution.owner(&index), Some(rank));
                    prop_assert_eq!(owners[number(&index, distribution.shape())].replace(rank), None);
                    let at = place.at(&index, &patch.start());
                    prop_assert_eq!(distribution.locate(&index), Some((rank, at)));
                    prop_assert!(!std::mem::replace(&mut used[at], true));
                }
            }
        }
        prop_assert!(owners.iter().all(Option::is_some));
        prop_assert_eq!(distribution.locate(distribution.shape()), None);
    }

    #[test]
    fn owners_cover_a_patch_once((distribution, _) in any_distribution(), corners in prop::collection::vec((0usize..10, 0usize..10), 3)) {
        let shape = distribution.shape();
        let patch = Patch::from_fn(shape.len(), |axis| {
            let (a, b) = (corners[axis].0.min(shape[axis]), corners[axis].1.min(shape[axis]));
            a.min(b)..a.max(b)
        });
        let mut covered = Vec::new();
        for (rank, part) in distribution.owners(&patch) {
            prop_assert!(!part.is_empty());
            for index in indices(&part) {
                prop_assert!(patch.contains(&index));
                prop_assert_eq!(distribution.owner(&index), Some(rank));
                covered.push(number(&index, shape));
            }
        }
        covered.sort_unstable();
        covered.dedup();
        prop_assert_eq!(covered.len(), patch.len());
    }

    #[test]
    fn equal_shares_are_the_same_however_they_are_said((a, ranks) in any_distribution(), (b, _) in any_distribution()) {
        let at = |cut: &Cut| {
            let starts = (0..cut.pieces()).map(|piece| cut.piece(piece).start.min(cut.len()));
            Cut::At(starts.chain([cut.len()]).collect())
        };
        let said_otherwise = Distribution::new(a.cuts.map(at), a.deal);
        prop_assert!(a.same_blocks(&said_otherwise) && said_otherwise.same_blocks(&a));
        let shares = |distribution: &Distribution| {
            (0..ranks.max(16)).map(|rank| distribution.patches_on(rank).collect::<Vec<_>>()).collect::<Vec<_>>()
        };
        prop_assert_eq!(a.same_blocks(&b), a.shape == b.shape && shares(&a) == shares(&b));
    }
}
