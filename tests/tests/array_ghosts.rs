//! Ghost cells against the elements they are copies of, and a heat equation that lives on them.

use armci_core::World;
use global_arrays::{Builder, Error, GlobalArray, Group, Side};
use ndarray::{Array, Array2, ArrayD, ArrayView, Dimension, Ix1, Ix2, Ix3, IxDyn, Zip, s};
use tests::{for_each, matrix, spread};

/// What ghost cells hold that were never updated.
const BLANK: i64 = -1;

/// The widths and the periodic axes of an array, drawn.
struct Cells {
    widths: Vec<usize>,
    periodic: Vec<bool>,
}

impl Cells {
    fn draw(dims: usize, random: &mut fastrand::Rng) -> Self {
        let widths = (0..dims).map(|_| random.usize(..4)).collect();
        Cells { widths, periodic: (0..dims).map(|_| random.bool()).collect() }
    }

    /// An array with these cells, regular or irregular (also with empty blocks), each element its number.
    fn array<D: Dimension>(
        &self,
        group: impl Into<Group>,
        shape: D,
        random: &mut fastrand::Rng,
    ) -> GlobalArray<i64, D> {
        let (lengths, group) = (shape.slice().to_vec(), group.into());
        let mut left = group.size();
        let builder: Builder<i64, D> = GlobalArray::builder(&group, "cells", shape);
        let builder = builder.ghosts(&self.widths).periodic(&self.periodic).filled(BLANK);
        let builder = if random.bool() {
            builder
        } else {
            let starts = lengths.iter().map(|len| {
                let pieces = random.usize(1..=left);
                left /= pieces;
                let mut starts: Vec<_> = (1..pieces).map(|_| random.usize(..=*len)).chain([0]).collect();
                starts.sort_unstable();
                starts
            });
            builder.irregular(&starts.collect::<Vec<_>>())
        };
        let array = builder.create().unwrap();
        let mut random = random.clone();
        if random.usize(..array.group().size()) == array.group().rank() {
            array.put(.., &numbered(array.raw_dim())).unwrap();
        }
        array
    }

    /// This rank's block with its ghost cells as it should be: those cells brought up to date for which `updated` says
    /// so, being told on which side of the block they are along each axis.
    fn expected<D: Dimension>(&self, array: &GlobalArray<i64, D>, updated: impl Fn(&[isize]) -> bool) -> ArrayD<i64> {
        let block = array.block_on(array.group().rank()).unwrap();
        if block.is_empty() {
            return ArrayD::zeros(&block.shape()[..]);
        }
        let shape: Vec<_> = block.shape().iter().zip(&self.widths).map(|(len, width)| len + 2 * width).collect();
        let plain = numbered(array.raw_dim()).into_dyn();
        ArrayD::from_shape_fn(shape, |cell| {
            let mut index = Vec::new();
            let mut side = Vec::new();
            let mut exists = true;
            for axis in 0..block.ndim() {
                let (range, len) = (block.range(axis), plain.shape()[axis] as isize);
                let at = (range.start + cell[axis]) as isize - self.widths[axis] as isize;
                side.push(if at < range.start as isize { -1 } else { isize::from(at >= range.end as isize) });
                exists &= self.periodic[axis] || (0..len).contains(&at);
                index.push(at.rem_euclid(len) as usize);
            }
            let own = side.iter().all(|side| *side == 0);
            if own || exists && updated(&side) { plain[&index[..]] } else { BLANK }
        })
    }
}

/// Each element its number, from 0.
fn numbered<D: Dimension>(shape: D) -> Array<i64, D> {
    Array::from_iter(0..shape.size() as i64).into_shape_with_order(shape).unwrap()
}

/// Holds the cells of this rank, as a copy and in place, to what they should be.
fn check<D: Dimension>(array: &GlobalArray<i64, D>, expected: &ArrayD<i64>) {
    let copy = array.ghost_block().unwrap();
    assert_eq!(copy.view().into_dyn(), *expected, "{:?}", array.distribution());
    // SAFETY: OWN-BLOCK: nobody writes between the updates and the next sync.
    #[allow(unsafe_code)]
    let view = unsafe { array.local_view_with_ghosts() }.unwrap();
    assert_eq!(view, copy);
}

fn all_directions<D: Dimension>(world: &World, dims: usize, longest: usize, random: &mut fastrand::Rng) {
    let cells = Cells::draw(dims, random);
    let array = cells.array(world, spread::shape::<D>(dims, longest, random), random);
    array.update_ghosts().unwrap();
    check(&array, &cells.expected(&array, |_| true));
    array.sync().unwrap();
    assert_eq!(array.get(..).unwrap(), numbered(array.raw_dim()), "an update changes no element");
    array.destroy().unwrap();
}

#[test]
fn ghost_cells_are_the_elements_beside_the_block() {
    matrix(|world| {
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..12 {
            all_directions::<Ix1>(world, 1, 14, &mut random);
            all_directions::<Ix2>(world, 2, 9, &mut random);
            all_directions::<Ix3>(world, 3, 5, &mut random);
        }
        for dims in 4..=6 {
            all_directions::<IxDyn>(world, dims, 3, &mut random);
        }
    });
}

#[test]
fn an_update_along_one_direction_changes_that_side_alone() {
    for_each(1..=5, |world| {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..12 {
            let dims = random.usize(1..=4);
            let cells = Cells::draw(dims, &mut random);
            let shape = spread::shape::<IxDyn>(dims, 5, &mut random);
            for corners in [true, false] {
                for (side, sign) in [(Side::Low, -1), (Side::High, 1)] {
                    let array = cells.array(world, shape.clone(), &mut random);
                    let axis = random.usize(..dims);
                    array.update_ghosts_along(axis, side, corners).unwrap();
                    let expected = cells.expected(&array, |sides| {
                        let elsewhere = sides.iter().filter(|side| **side != 0).count();
                        sides[axis] == sign && (corners || elsewhere == 1)
                    });
                    check(&array, &expected);
                    array.destroy().unwrap();
                }
            }
        }
    });
}

#[test]
fn directions_one_after_the_other_make_a_whole_update() {
    for_each(1..=5, |world| {
        let mut random = fastrand::Rng::with_seed(8);
        for _ in 0..8 {
            let cells = Cells::draw(2, &mut random);
            let array = cells.array(world, spread::shape::<Ix2>(2, 8, &mut random), &mut random);
            for (axis, corners) in [(0, true), (1, false)] {
                array.update_ghosts_along(axis, Side::Low, corners).unwrap();
                array.update_ghosts_along(axis, Side::High, corners).unwrap();
            }
            check(&array, &cells.expected(&array, |_| true));
            array.destroy().unwrap();
        }
    });
}

#[test]
fn teams_have_ghost_cells_of_their_own() {
    matrix(|world| {
        let team = world.split(Some((world.rank() % 2) as i64), -(world.rank() as i64)).unwrap().unwrap();
        let mut random = fastrand::Rng::with_seed(9);
        for _ in 0..6 {
            let cells = Cells::draw(2, &mut random);
            let array = cells.array(&team, spread::shape::<Ix2>(2, 8, &mut random), &mut random);
            // The other team is elsewhere in its updates.
            for _ in 0..=world.rank() % 2 {
                array.update_ghosts().unwrap();
            }
            check(&array, &cells.expected(&array, |_| true));
            array.destroy().unwrap();
        }
        team.free().unwrap();
    });
}

#[test]
fn work_is_done_while_ghost_cells_are_on_their_way() {
    matrix(|world| {
        let cells = Cells { widths: vec![2, 1], periodic: vec![true, false] };
        let mut random = fastrand::Rng::with_seed(10);
        let array = cells.array(world, Ix2(9, 6), &mut random);
        for _ in 0..20 {
            // The core is there to be read, and other elements to be fetched.
            let sums = array.update_ghosts_while(|| {
                let core = array.read_local().unwrap();
                // SAFETY: OWN-BLOCK: nobody writes elements.
                #[allow(unsafe_code)]
                let view = unsafe { array.local_view() }.unwrap();
                assert_eq!(view, core);
                array.get(..).unwrap().sum()
            });
            assert_eq!(sums.unwrap(), (0..54).sum());
            check(&array, &cells.expected(&array, |_| true));
        }
        array.destroy().unwrap();
    });
}

#[test]
fn cells_beyond_the_ends_keep_what_the_program_put_there() {
    matrix(|world| {
        let array = GlobalArray::<f64>::builder(world, "walls", [6, 5]).ghosts(&[1, 2]).create().unwrap();
        assert!(array.has_ghosts());
        let mut cells = array.ghost_block().unwrap();
        assert!(cells.iter().all(|value| *value == 0.0), "ghost cells are made with the array's value");
        cells.fill(7.0);
        array.put_ghost_block(cells.slice(s![..;-1, ..])).unwrap();
        array.sync().unwrap();
        array.fill(1.0).unwrap();
        for _ in 0..2 {
            array.update_ghosts().unwrap();
            let block = array.block_on(world.rank()).unwrap();
            for ((i, j), value) in array.ghost_block().unwrap().indexed_iter() {
                let inside =
                    (1..=6).contains(&(block.range(0).start + i)) && (2..7).contains(&(block.range(1).start + j));
                assert_eq!(*value, if inside { 1.0 } else { 7.0 });
            }
        }
        array.destroy().unwrap();
    });
}

#[test]
fn what_has_no_ghost_cells_is_told_so() {
    for_each(1..=3, |world| {
        let plain = GlobalArray::<f64>::create(world, "plain", [4, 4]).unwrap();
        assert!(!plain.has_ghosts());
        plain.update_ghosts().unwrap();
        assert_eq!(plain.ghost_block().unwrap().shape(), &plain.block_on(world.rank()).unwrap().shape()[..]);
        let axis = plain.update_ghosts_along(2, Side::Low, true);
        assert!(matches!(axis, Err(Error::Mismatch { .. })), "{axis:?}");
        let shape = plain.put_ghost_block(&Array2::zeros((40, 40)));
        assert!(matches!(shape, Err(Error::BufferShape { .. })), "{shape:?}");
        plain.destroy().unwrap();
        let dealt = GlobalArray::<f64>::builder(world, "dealt", [4, 4]).block_cyclic(&[1, 2]).create().unwrap();
        dealt.update_ghosts().unwrap();
        assert!(matches!(dealt.ghost_block(), Err(Error::Mismatch { .. })));
        dealt.destroy().unwrap();
    });
}

/// How much of the difference flows in a step.
const FLOW: f64 = 0.2;

/// One step of the heat equation for all but the outermost cells of an array.
fn step(cells: ArrayView<'_, f64, Ix2>) -> Array2<f64> {
    let (rows, cols) = cells.dim();
    let part = |row: usize, col: usize| cells.slice(s![row..rows - 2 + row, col..cols - 2 + col]);
    let mut next = part(1, 1).to_owned();
    Zip::from(&mut next)
        .and(part(0, 1))
        .and(part(2, 1))
        .and(part(1, 0))
        .and(part(1, 2))
        .for_each(|here, north, south, west, east| *here += FLOW * (north + south + west + east - 4.0 * *here));
    next
}

/// Around a plain array, what its neighbours are: its other end, or cold walls.
fn surrounded(plain: &Array2<f64>, periodic: [bool; 2]) -> Array2<f64> {
    let (rows, cols) = plain.dim();
    Array2::from_shape_fn((rows + 2, cols + 2), |(i, j)| {
        let wall = !periodic[0] && (i == 0 || i > rows) || !periodic[1] && (j == 0 || j > cols);
        if wall { -1.0 } else { plain[[(i + rows - 1) % rows, (j + cols - 1) % cols]] }
    })
}

#[test]
#[allow(clippy::reversed_empty_ranges)]
fn heat_flows_as_in_a_plain_array() {
    for_each(1..=5, |world| {
        for periodic in [[false, false], [true, false], [true, true]] {
            for shape in [[13, 9], [3, 2], [1, 6]] {
                let heat = GlobalArray::<f64>::builder(world, "heat", shape)
                    .ghosts(&[1, 1])
                    .periodic(&periodic)
                    .filled(-1.0)
                    .create()
                    .unwrap();
                heat.indexed_map_inplace(|(i, j), heat| *heat = (i * i + 3 * j) as f64).unwrap();
                let mut plain = Array2::from_shape_fn(shape, |(i, j)| (i * i + 3 * j) as f64);
                let block = heat.block_on(world.rank()).unwrap();
                for turn in 0..10 {
                    heat.update_ghosts().unwrap();
                    if !block.is_empty() && turn % 2 == 0 {
                        // The safe way: by copies.
                        let next = step(heat.ghost_block().unwrap().view());
                        heat.put(block, &next).unwrap();
                    } else if !block.is_empty() {
                        // SAFETY: OWN-BLOCK: each rank writes its own block alone before the next update.
                        #[allow(unsafe_code)]
                        let mut cells = unsafe { heat.local_view_with_ghosts_mut() }.unwrap();
                        let next = step(cells.view());
                        cells.slice_mut(s![1..-1, 1..-1]).assign(&next);
                    }
                    plain = step(surrounded(&plain, periodic).view());
                }
                heat.sync().unwrap();
                assert_eq!(heat.get(..).unwrap(), plain, "the same operations in the same order");
                heat.destroy().unwrap();
            }
        }
    });
}
