//! Put and get of 8 bytes, with one, some and many allocations alive: through a [`GlobalPtr`], and through a place
//! known as (rank, address), as C's callers know it.
//!
//! What is measured is the cost of finding the place; the bytes are warm. With many allocations alive the oldest and
//! the newest are tried, which searches of any kind tell apart.
//!
//! # Safety
//! OWN-WORDS: the local word and the 8 bytes at each address belong to rank 1 while it measures: rank 0 is in a
//! barrier, and the allocations live on.
#![allow(unsafe_code)]

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use armci_core::{GlobalPtr, Region, World};

use crate::error::Result;
use crate::figure::Figures;
use crate::timing::{Effort, Side, in_turn, side};

/// How many allocations are alive; one comes first.
const ALIVE: [usize; 3] = [1, 256, 10_000];

/// Bytes of each.
const BYTES: usize = 64;

/// What is timed at each place.
const WAYS: [&str; 5] = ["put_ptr", "get_ptr", "put_located", "get_located", "word"];

/// Measures `WAY_N_newest` and `WAY_N_oldest` for N allocations; collective, rank 1 does the work.
///
/// # Errors
/// What the operations say.
pub fn measure(world: &World, effort: Effort, figures: &mut Figures) -> Result<()> {
    let mut regions = Vec::new();
    for alive in ALIVE {
        while regions.len() < alive {
            regions.push(world.allocate(BYTES)?);
        }
        time(world, effort, &regions, figures)?;
    }
    for region in regions.drain(1..) {
        world.free(region)?;
    }
    // Once more, so that the time between one and many does not count as their difference.
    let mut again = Figures::default();
    time(world, effort, &regions, &mut again)?;
    for name in WAYS.iter().flat_map(|way| ["newest", "oldest"].map(|which| format!("{way}_1_{which}"))) {
        let both = figures.get(&name).zip(again.get(&name));
        figures.add(name, both.map(|(first, last)| first.mean(last)));
    }
    regions.into_iter().try_for_each(|region| world.free(region))?;
    Ok(())
}

fn time(world: &World, effort: Effort, regions: &[Region], figures: &mut Figures) -> Result<()> {
    world.barrier()?;
    if let (1, [oldest, ..], [.., newest]) = (world.rank(), regions, regions) {
        let mut sides = Vec::new();
        for region in [newest, oldest] {
            sides.extend(at(world, region.at(0, 0), world.address(region, 0)?));
        }
        let taken = in_turn(effort.samples, 200, &mut sides)?;
        let names = ["newest", "oldest"].into_iter().flat_map(|which| WAYS.map(|way| (way, which)));
        for ((way, which), figure) in names.zip(taken) {
            figures.add(format!("{way}_{}_{which}", regions.len()), figure);
        }
    }
    Ok(world.barrier()?)
}

/// The [`WAYS`] at one place.
fn at(world: &World, place: GlobalPtr<u64>, address: *mut u8) -> [Side<'_, armci_core::Error>; WAYS.len()] {
    let (mine, mut yours) = ([7u64], [0u64]);
    let (source, mut target) = ([7u8; 8], [0u8; 8]);
    [
        side(move || world.put(&mine, black_box(place))),
        side(move || world.get(black_box(place), &mut yours)),
        side(move || {
            let place = world.locate(0, black_box(address))?;
            // SAFETY: OWN-WORDS.
            unsafe { world.put_from(source.as_ptr(), source.len(), place) }
        }),
        side(move || {
            let place = world.locate(0, black_box(address))?;
            // SAFETY: OWN-WORDS.
            unsafe { world.get_into(place, target.as_mut_ptr(), target.len()) }
        }),
        side(move || {
            // SAFETY: OWN-WORDS; allocations are aligned to lines.
            let word = unsafe { AtomicU64::from_ptr(black_box(address).cast()) };
            word.store(black_box(mine[0]), Ordering::Relaxed);
            Ok(())
        }),
    ]
}

/// The worse of newest and oldest, as `WAY_N`.
pub fn summarize(figures: &mut Figures) {
    for way in WAYS {
        for alive in ALIVE {
            let name = format!("{way}_{alive}");
            let both = ["newest", "oldest"].map(|which| figures.get(&format!("{name}_{which}")));
            let worse = both.into_iter().flatten().max_by(|a, b| a.median.total_cmp(&b.median));
            figures.add(name, worse);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Figure;

    #[test]
    fn the_worse_end_counts() {
        let mut figures = Figures::default();
        figures.add("put_ptr_256_newest", Some(Figure::single(4.0)));
        figures.add("put_ptr_256_oldest", Some(Figure::single(9.0)));
        summarize(&mut figures);
        assert_eq!(figures.get("put_ptr_256"), Some(Figure::single(9.0)));
        assert_eq!(figures.get("put_ptr_1"), None);
    }
}
