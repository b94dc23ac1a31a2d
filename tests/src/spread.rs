//! Arrays of every distribution, drawn at random: alike on all ranks that draw from equal generators.

use std::ops::Range;

use armci_core::World;
use bytemuck::Pod;
use global_arrays::{Builder, GlobalArray, Patch};
use ndarray::Dimension;

/// A builder of an array of this shape whose distribution is drawn: regular, with smallest blocks, irregular (also with
/// empty blocks), block-cyclic, ScaLAPACK's, tiled, with ghost cells.
pub fn builder<T: Pod, D: Dimension>(world: &World, name: &str, shape: D, random: &mut fastrand::Rng) -> Builder<T, D> {
    let lengths = shape.slice().to_vec();
    let ranks = world.size();
    let sizes =
        |random: &mut fastrand::Rng| lengths.iter().map(|len| random.usize(1..=len / 2 + 2)).collect::<Vec<_>>();
    let builder = GlobalArray::<T, D>::builder(world, name, shape);
    match random.usize(..7) {
        0 => builder,
        1 => builder.min_block(&sizes(random)),
        2 => {
            let mut left = ranks;
            let starts = lengths.iter().map(|len| {
                let pieces = random.usize(1..=left);
                left /= pieces;
                let mut starts: Vec<_> = (1..pieces).map(|_| random.usize(..=*len)).chain([0]).collect();
                starts.sort_unstable();
                starts
            });
            builder.irregular(&starts.collect::<Vec<_>>())
        }
        3 => builder.block_cyclic(&sizes(random)),
        kind @ 4..6 => {
            let mut left = ranks;
            let grid = lengths.iter().map(|_| {
                let here = random.usize(1..=left);
                left /= here;
                here
            });
            let grid: Vec<_> = grid.collect();
            let block = sizes(random);
            if kind == 4 { builder.scalapack(&block, &grid) } else { builder.tiled(&block, &grid) }
        }
        _ => builder.ghosts(&lengths.iter().map(|_| random.usize(..3)).collect::<Vec<_>>()),
    }
}

/// An array of zeros of this shape whose distribution is drawn. Collective.
///
/// # Panics
/// If it cannot be made.
pub fn array<T: Pod, D: Dimension>(
    world: &World,
    name: &str,
    shape: D,
    random: &mut fastrand::Rng,
) -> GlobalArray<T, D> {
    builder(world, name, shape, random).create().unwrap_or_else(|error| panic!("{error}"))
}

/// A shape of `D` dimensions, of up to `longest` along each axis; now and then an axis has none, or one, or fewer than there are ranks.
pub fn shape<D: Dimension>(dims: usize, longest: usize, random: &mut fastrand::Rng) -> D {
    let mut shape = D::zeros(dims);
    for axis in 0..dims {
        shape[axis] = if random.usize(..20) == 0 { random.usize(..2) } else { random.usize(1..=longest) };
    }
    shape
}

/// A patch of an array of this shape; now and then an empty one.
pub fn patch(shape: &[usize], random: &mut fastrand::Rng) -> Patch {
    let ranges: Vec<Range<usize>> = shape
        .iter()
        .map(|len| {
            let (a, b) = (random.usize(..=*len), random.usize(..=*len));
            a.min(b)..a.max(b)
        })
        .collect();
    Patch::new(&ranges)
}
