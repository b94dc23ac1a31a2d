//! Who owns what, and what of it is reached in place.

use armci_core::World;
use global_arrays::{Distribution, Error, GlobalArray, Patch};
use ndarray::{Array2, ArrayD, Dimension, Ix1, Ix2, Ix3, IxDyn, s};
use tests::{Ranks, for_each, matrix, spread};

/// An array of random distribution in which each element is its owner's number, as each owner put it to its blocks.
fn owned<D: Dimension>(world: &World, dims: usize, random: &mut fastrand::Rng) -> GlobalArray<i64, D> {
    let array = spread::array::<i64, D>(world, "owned", spread::shape(dims, 9, random), random);
    for block in array.blocks_on(world.rank()) {
        assert!(!block.is_empty());
        let value = ArrayD::from_elem(&block.shape()[..], world.rank() as i64);
        array.put(block, value.view().into_dimensionality::<D>().unwrap()).unwrap();
    }
    array.sync().unwrap();
    array
}

fn owners_are_told<D: Dimension>(world: &World, dims: usize, random: &mut fastrand::Rng) {
    let array = owned::<D>(world, dims, random);
    let all = array.get(..).unwrap().into_dyn();
    let distribution: &Distribution = array.distribution();
    for (index, owner) in all.indexed_iter() {
        let mut typed = array.raw_dim();
        typed.slice_mut().copy_from_slice(index.slice());
        assert_eq!(array.owner(typed).unwrap() as i64, *owner);
        let number = distribution.block_number(index.slice()).unwrap();
        assert_eq!(distribution.block_owner(number), Some(*owner as usize));
        assert!(distribution.block_at(number).unwrap().contains(index.slice()));
    }
    let outside = array.raw_dim();
    assert!(matches!(array.owner(outside), Err(Error::OutOfBounds { .. })));
    assert_eq!(distribution.block_at(distribution.block_count()), None);
    assert_eq!(distribution.block_owner(distribution.block_count()), None);
    let largest = distribution.block_shape();
    for block in (0..distribution.block_count()).filter_map(|number| distribution.block_at(number)) {
        assert!(block.shape().iter().zip(largest.iter()).all(|(len, largest)| len <= largest));
    }
    let patch = spread::patch(array.shape(), random);
    let mut covered = 0;
    for (rank, part) in array.owners(&patch).unwrap() {
        assert_eq!(part.intersection(&patch), part);
        assert!(array.get(part).unwrap().iter().all(|owner| *owner == rank as i64));
        covered += part.len();
    }
    assert_eq!(covered, patch.len());
    assert_eq!(array.blocks_on(world.size() + 9).count(), 0);
    array.sync().unwrap();
    array.destroy().unwrap();
}

#[test]
fn every_question_about_owners_has_the_same_answer() {
    for_each(1..=5, |world| {
        let mut random = fastrand::Rng::with_seed(21);
        for _ in 0..10 {
            owners_are_told::<Ix1>(world, 1, &mut random);
            owners_are_told::<Ix2>(world, 2, &mut random);
            owners_are_told::<Ix3>(world, 3, &mut random);
            owners_are_told::<IxDyn>(world, 4, &mut random);
        }
    });
}

#[test]
fn arrays_of_equal_shares_are_said_to_be() {
    for_each(1..=5, |world| {
        let ranks = world.size();
        let create = |name, shape| GlobalArray::<f64>::builder(world, name, shape);
        let a = create("a", [10, 7]).create().unwrap();
        let ghosts = create("ghosts", [10, 7]).ghosts(&[1, 0]).create().unwrap();
        let rows: Vec<usize> = (0..ranks).map(|rank| rank * 10 / ranks).collect();
        let strips = create("strips", [10, 7]).irregular(&[rows, vec![0]]).create().unwrap();
        let taller = create("taller", [11, 7]).create().unwrap();
        let team = world.split(Some(0), -(world.rank() as i64)).unwrap().unwrap();
        let turned = GlobalArray::<f64>::create(&team, "turned", [10, 7]).unwrap();
        let dealt = create("dealt", [10, 7]).block_cyclic(&[3, 7]).create().unwrap();
        let grid = GlobalArray::<i32>::builder(world, "grid", [10, 7]).tiled(&[3, 7], &[ranks, 1]).create().unwrap();
        assert!(a.same_distribution(&a) && a.same_distribution(&ghosts));
        assert!(dealt.same_distribution(&grid) && grid.same_distribution(&dealt), "the same shares, said otherwise");
        assert!(!a.same_distribution(&taller));
        assert_eq!(a.same_distribution(&turned), ranks == 1, "the team has the ranks in another order");
        assert!(!a.same_distribution(&dealt) && !strips.same_distribution(&dealt));
        assert_eq!(a.same_distribution(&strips), a.distribution().same_blocks(strips.distribution()));
        assert_eq!(a.distribution().rank_grid(), Some(*a.distribution().blocks()));
        assert_eq!(grid.distribution().rank_index(ranks - 1).unwrap()[..], [ranks - 1, 0]);
        assert_eq!((grid.distribution().rank_index(ranks), dealt.distribution().rank_grid()), (None, None));
        for array in [a, ghosts, strips, taller, turned, dealt] {
            array.destroy().unwrap();
        }
        grid.destroy().unwrap();
        team.free().unwrap();
    });
}

#[test]
#[allow(unsafe_code)]
fn blocks_of_all_ranks_of_the_node_are_reached_in_place() {
    for_each(1..=5, |world| {
        let mut random = fastrand::Rng::with_seed(22);
        for _ in 0..10 {
            let array = owned::<Ix2>(world, 2, &mut random);
            let all = array.get(..).unwrap();
            let node_of = |rank: usize| world.node_of(rank).unwrap();
            let is_near = |rank: &usize| node_of(*rank) == node_of(world.rank());
            let near: Vec<_> = (0..world.size()).filter(is_near).collect();
            assert_eq!(array.ranks_on_node().collect::<Vec<_>>(), near);
            assert!(!array.shares_node(world.size()));
            for rank in (0..=world.size()).filter(|rank| !near.contains(rank)) {
                // SAFETY: OWN-BLOCK: nobody writes before the next sync.
                let elsewhere = unsafe { array.views_on(rank) };
                assert!(matches!(elsewhere, Err(Error::Runtime { .. })), "rank {rank} of {near:?}");
            }
            for &rank in &near {
                // SAFETY: OWN-BLOCK: as above.
                let views = unsafe { array.views_on(rank) }.unwrap();
                assert_eq!(
                    views.iter().map(|(patch, _)| *patch).collect::<Vec<_>>(),
                    array.blocks_on(rank).collect::<Vec<_>>()
                );
                for (patch, view) in views {
                    assert_eq!(view, all.slice(s![patch.range(0), patch.range(1)]));
                }
            }
            array.sync().unwrap();
            // Each changes its right neighbour's blocks, on the node.
            let neighbour = |rank: usize, distance: usize| {
                let ranks: Vec<_> = (0..world.size()).filter(|r| node_of(*r) == node_of(rank)).collect();
                let at = ranks.iter().position(|r| *r == rank).unwrap();
                ranks[(at + distance) % ranks.len()]
            };
            let right = neighbour(world.rank(), 1);
            // SAFETY: OWN-BLOCK: one rank writes these, between two syncs.
            for (_, mut view) in unsafe { array.views_on_mut(right) }.unwrap() {
                view += 100 * (1 + world.rank() as i64);
            }
            array.sync().unwrap();
            let left = |owner: i64| (0..world.size()).find(|r| neighbour(*r, 1) as i64 == owner).unwrap() as i64;
            assert_eq!(array.get(..).unwrap(), all.mapv(|owner| owner + 100 * (1 + left(owner))));
            array.sync().unwrap();
            // SAFETY: OWN-BLOCK: each rank its own.
            for (patch, mut view) in unsafe { array.local_views_mut() }.unwrap() {
                view.indexed_iter_mut().for_each(|((i, j), value)| {
                    *value = (100 * (patch.range(0).start + i) + patch.range(1).start + j) as i64;
                });
            }
            array.sync().unwrap();
            let numbers = Array2::from_shape_fn(array.raw_dim(), |(i, j)| (100 * i + j) as i64);
            assert_eq!(array.get(..).unwrap(), numbers);
            // SAFETY: OWN-BLOCK: nobody writes before the next sync.
            for (patch, view) in unsafe { array.local_views() }.unwrap() {
                assert_eq!(view, numbers.slice(s![patch.range(0), patch.range(1)]));
            }
            if let Some(block) = array.block_on(world.rank()) {
                let mine = numbers.slice(s![block.range(0), block.range(1)]);
                assert_eq!(array.read_local().unwrap(), mine);
                // SAFETY: OWN-BLOCK: as above.
                assert_eq!(unsafe { array.local_view() }.unwrap(), mine);
            } else {
                assert!(matches!(array.read_local(), Err(Error::Mismatch { .. })));
            }
            array.sync().unwrap();
            array.destroy().unwrap();
        }
    });
}

#[test]
#[allow(unsafe_code)]
fn blocks_of_scalapack_are_one_local_array() {
    for_each(1..=5, |world| {
        let ranks = world.size();
        let mut random = fastrand::Rng::with_seed(23);
        for _ in 0..10 {
            let shape: Ix2 = spread::shape(2, 12, &mut random);
            let (block, rows) = ([random.usize(1..5), random.usize(1..5)], random.usize(1..=ranks));
            let grid = [rows, ranks / rows];
            let array = GlobalArray::<i64>::builder(world, "joined", shape).scalapack(&block, &grid).create().unwrap();
            array.indexed_map_inplace(|(i, j), value| *value = (100 * i + j) as i64).unwrap();
            let me = array.distribution().rank_index(world.rank());
            // SAFETY: OWN-BLOCK: nobody writes before the next sync.
            let local = unsafe { array.local_joined_view() }.unwrap();
            assert_eq!(local.shape(), &array.distribution().joined_shape(world.rank()).unwrap()[..]);
            // ScaLAPACK's own rule: of each axis, the indices whose block number is mine, in turn.
            let mine = |axis: usize| -> Vec<usize> {
                let place = me.map_or(usize::MAX, |me| me[axis]);
                (0..array.shape()[axis]).filter(|at| at / block[axis] % grid[axis] == place).collect()
            };
            let (rows, cols) = (mine(0), mine(1));
            assert_eq!(local.len(), rows.len() * cols.len());
            for ((i, j), value) in local.indexed_iter() {
                assert_eq!(*value, (100 * rows[i] + cols[j]) as i64);
            }
            array.sync().unwrap();
            // SAFETY: OWN-BLOCK: each rank its own.
            unsafe { array.local_joined_view_mut() }.unwrap().fill(world.rank() as i64);
            array.sync().unwrap();
            for (rank, part) in array.owners(..).unwrap() {
                assert!(array.get(part).unwrap().iter().all(|value| *value == rank as i64));
            }
            array.sync().unwrap();
            array.destroy().unwrap();
        }
        let regular = GlobalArray::<i64>::create(world, "regular", [4, 4]).unwrap();
        // SAFETY: OWN-BLOCK: refused.
        assert!(matches!(unsafe { regular.local_joined_view() }, Err(Error::Mismatch { .. })));
        regular.destroy().unwrap();
    });
}

#[test]
#[allow(unsafe_code, clippy::reversed_empty_ranges)]
fn a_view_shows_what_its_rank_wrote_before_by_message() {
    for ranks in [1, 2, 4] {
        for progress in ["thread", "none"] {
            Ranks::new(ranks).env("ARMCI_PROTOCOL", "am").env("ARMCI_PROGRESS", progress).run(|world| {
                let array = GlobalArray::<f64>::builder(world, "own", [16, 16]).ghosts(&[1, 0]).create().unwrap();
                let block = array.block_on(world.rank()).unwrap();
                let right = (world.rank() + 1) % world.size();
                for turn in 0..50 {
                    let values = Array2::from_elem((block.shape()[0], block.shape()[1]), f64::from(turn));
                    array.put(block, &values).unwrap();
                    array.accumulate(block, 2.0, &Array2::ones(values.raw_dim())).unwrap();
                    // SAFETY: OWN-BLOCK: only its rank touches a block before the sync.
                    assert_eq!(unsafe { array.local_view() }.unwrap(), &values + 2.0);
                    array.put(block, &values).unwrap();
                    // SAFETY: OWN-BLOCK: as above.
                    unsafe { array.local_view_mut() }.unwrap().mapv_inplace(|x| x + 1.0);
                    assert_eq!(array.get(block).unwrap(), &values + 1.0, "a get sees what a view wrote");
                    array.put(block, &values).unwrap();
                    // SAFETY: OWN-BLOCK: as above.
                    let cells = unsafe { array.local_view_with_ghosts() }.unwrap();
                    assert_eq!(cells.slice(s![1..-1, ..]), values);
                    array.sync().unwrap();
                    // To another's block likewise.
                    let theirs = array.block_on(right).unwrap();
                    let values = Array2::from_elem((theirs.shape()[0], theirs.shape()[1]), f64::from(-turn));
                    array.put(theirs, &values).unwrap();
                    if array.shares_node(right) {
                        // SAFETY: OWN-BLOCK: only this rank touches that block before the sync.
                        assert_eq!(unsafe { array.views_on(right) }.unwrap()[0].1, values);
                    }
                    array.sync().unwrap();
                }
                array.destroy().unwrap();
            });
        }
    }
}

#[test]
fn elements_are_changed_in_place_as_in_a_plain_array() {
    matrix(|world| {
        let mut random = fastrand::Rng::with_seed(24);
        for _ in 0..10 {
            let dims = random.usize(1..=4);
            let shape: IxDyn = spread::shape(dims, 7, &mut random);
            let array = spread::array::<f64, IxDyn>(world, "map", shape.clone(), &mut random);
            let mut plain = ArrayD::<f64>::zeros(shape.slice());
            let number = |index: &IxDyn| index.slice().iter().fold(1.0, |number, at| number * 10.0 + *at as f64);
            plain.indexed_iter_mut().for_each(|(index, value)| *value = number(&index));
            array.indexed_map_inplace(|index, value| *value = number(&index)).unwrap();
            assert_eq!(array.get(..).unwrap(), plain);
            let patch = spread::patch(shape.slice(), &mut random);
            let part = array.slice(&patch).unwrap();
            let mut place = plain.slice_each_axis_mut(|axis| patch.range(axis.axis.index()).into());
            place.mapv_inplace(f64::sqrt);
            part.map_inplace(|value| *value = value.sqrt()).unwrap();
            let start = patch.start();
            place.indexed_iter_mut().for_each(|(within, value)| {
                *value -= (0..dims).map(|axis| (start[axis] + within[axis]) as f64).sum::<f64>();
            });
            part.indexed_map_inplace(|index, value| *value -= index.slice().iter().sum::<usize>() as f64).unwrap();
            assert_eq!(array.get(..).unwrap(), plain);
            array.sync().unwrap();
            array.destroy().unwrap();
        }
    });
}

#[test]
fn the_array_may_be_used_while_its_elements_are_changed() {
    matrix(|world| {
        let array = GlobalArray::<i64>::builder(world, "itself", [6, 6]).filled(1).create().unwrap();
        let shared = GlobalArray::<i64>::create(world, "others", [1, 1]).unwrap();
        array
            .indexed_map_inplace(|(i, j), value| {
                assert_eq!(array.get_element([i, j]).unwrap(), 1);
                shared.accumulate(.., 1, &Array2::ones((1, 1))).unwrap();
                *value += 1;
            })
            .unwrap();
        shared.sync().unwrap();
        assert_eq!(shared.get_element([0, 0]).unwrap(), 36, "each element was changed once");
        assert_eq!(array.get(..).unwrap(), Array2::from_elem((6, 6), 2));
        shared.destroy().unwrap();
        array.destroy().unwrap();
    });
}

#[test]
fn a_patch_says_nothing_of_where_it_is_empty() {
    for_each(1..=3, |world| {
        let array = GlobalArray::<f64>::create(world, "few", [1, 2]).unwrap();
        assert_eq!(array.owners([0..1, 1..1]).unwrap().count(), 0);
        assert!(array.owners([0..2, 0..1]).is_err());
        let all: usize = (0..world.size()).flat_map(|rank| array.blocks_on(rank)).map(|block| block.len()).sum();
        assert_eq!(all, 2);
        let none = array.block_on(world.size()).unwrap();
        assert_eq!(none, Patch::new(&[0..0, 0..0]));
        array.destroy().unwrap();
    });
}
