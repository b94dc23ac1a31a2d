//! Put and get of contiguous blocks at every relative alignment, beside the best copy of the same bytes.
//!
//! The copies run in the same process on the very same buffers, in turn with ours. Of 64 measurements the worst is
//! mostly the noisiest; so one that seems too slow is repeated, longer, up to twice, and the last counts. All of them
//! are in the JSON file; the table shows, for each size, the one that comes nearest to its bound or exceeds it most.
//!
//! # Safety
//! OWN-SPAN: rank 1 alone works on the memory of both sides while it measures (rank 0 is in a barrier), and both
//! sides are [`SPAN`] bytes long, which no offset and size together exceed.
#![allow(unsafe_code)]

use armci_core::World;

use crate::beside;
use crate::contiguous::{MIB, Target};
use crate::error::Result;
use crate::figure::{Figure, Figures};
use crate::line::Class;
use crate::row::Bound;
use crate::timing::{Effort, Pages, Side, batch_for, side};
use crate::ways::copies;

/// The sizes.
pub const SIZES: [usize; 7] = [64, 512, 4 << 10, 16 << 10, 64 << 10, 256 << 10, MIB];

/// Where a buffer begins within a page: all that matters to lines, and what matters to pages.
const OFFSETS: [usize; 8] = [0, 8, 16, 32, 48, 64, 2048, 4032];

/// Bytes of each side.
const SPAN: usize = MIB + 4096;

/// What is asked of a copy of so many bytes, of the best one's time.
pub const fn bound(bytes: usize) -> Bound {
    if bytes < 16 << 10 { Bound::plus(8.0) } else { Bound::share(0.95) }
}

#[derive(Clone, Copy)]
struct Place {
    put: bool,
    bytes: usize,
    to: usize,
    from: usize,
}

impl Place {
    fn all() -> impl Iterator<Item = Place> {
        let each = |put, bytes| {
            let to_each = OFFSETS.into_iter().flat_map(|to| OFFSETS.map(|from| (to, from)));
            to_each.map(move |(to, from)| Place { put, bytes, to, from })
        };
        SIZES.into_iter().flat_map(move |bytes| [true, false].into_iter().flat_map(move |put| each(put, bytes)))
    }

    /// The row it belongs to.
    fn row(self) -> String {
        format!("{}_any_{}", if self.put { "put" } else { "get" }, self.bytes)
    }

    fn name(self) -> String {
        format!("{}_at_{}_{}", self.row(), self.to, self.from)
    }

    /// How much of what it may take it does take: more than 1 is too slow.
    fn excess(self, ours: Figure, best: Figure) -> f64 {
        // The bound does not depend on the class.
        bound(self.bytes).value(Some(best.median), Class::Near).map_or(0.0, |most| ours.median / most)
    }
}

/// Measures every place; collective, rank 1 does the work.
///
/// # Errors
/// What the operations say.
pub fn measure(world: &World, effort: Effort, figures: &mut Figures) -> Result<()> {
    let target = Target::allocate(world, SPAN)?;
    if world.rank() == 1 {
        let mut mine = Pages::new(SPAN, 2.0);
        let (here, there) = (mine.numbers_mut().as_mut_ptr(), target.address(world, 0)?);
        for place in Place::all() {
            let Place { put, bytes, to, from } = place;
            let far = target.on(0).add(if put { to } else { from } / 8);
            // SAFETY: OWN-SPAN, for these pointers and all calls that are given them.
            let (target, source) = unsafe {
                if put { (there.add(to / 8), here.add(from / 8)) } else { (here.add(to / 8), there.add(from / 8)) }
            };
            let mut run = |samples| {
                let ours: Side<'_, _> = if put {
                    // SAFETY: OWN-SPAN.
                    side(|| unsafe { world.put_from(source, bytes / 8, far) })
                } else {
                    // SAFETY: OWN-SPAN.
                    side(|| unsafe { world.get_into(far, target, bytes / 8) })
                };
                let others = copies().into_iter().map(|(name, way)| {
                    let call = move || {
                        // SAFETY: OWN-SPAN.
                        unsafe { way(target.cast(), source.cast(), bytes) };
                        Ok(())
                    };
                    (name, side(call))
                });
                beside::measure(figures, &place.name(), samples, batch_for(bytes), ours, others)
            };
            let samples = (effort.samples / 20).max(5);
            for samples in [samples, 5 * samples, 5 * samples] {
                if run(samples)?.is_none_or(|(ours, best)| place.excess(ours, best) <= 1.0) {
                    break;
                }
            }
        }
    }
    target.free(world)
}

/// Finds the worst place of each size and direction: `put_any_N`, the best way there, and where it was.
pub fn summarize(figures: &mut Figures) {
    for bytes in SIZES {
        for put in [true, false] {
            let of = |place: Place| {
                let (ours, (way, best)) = figures.get(&place.name()).zip(beside::best(figures, &place.name()))?;
                Some((place, ours, way.to_owned(), best))
            };
            let places = Place::all().filter(|place| place.put == put && place.bytes == bytes).filter_map(of);
            let excess = |(place, ours, _, best): &(Place, Figure, String, Figure)| place.excess(*ours, *best);
            let Some((place, ours, way, best)) = places.max_by(|a, b| excess(a).total_cmp(&excess(b))) else {
                continue;
            };
            figures.add(place.row(), Some(ours));
            figures.add(format!("{}:{way}", place.row()), Some(best));
            figures.add(place.row() + "_to", Some(Figure::single(place.to as f64)));
            figures.add(place.row() + "_from", Some(Figure::single(place.from as f64)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_place_is_found() {
        let mut figures = Figures::default();
        for place in Place::all() {
            let slow = place.put && place.bytes == 64 && place.to == 8 && place.from == 48;
            figures.add(place.name(), Some(Figure::single(if slow { 20.0 } else { 10.0 })));
            figures.add(place.name() + ":x", Some(Figure::single(9.0)));
        }
        summarize(&mut figures);
        assert_eq!(figures.get("put_any_64"), Some(Figure::single(20.0)));
        assert_eq!(figures.get("put_any_64:x"), Some(Figure::single(9.0)));
        assert_eq!(figures.get("put_any_64_to"), Some(Figure::single(8.0)));
        assert_eq!(figures.get("put_any_64_from"), Some(Figure::single(48.0)));
        assert_eq!(figures.get("get_any_512"), Some(Figure::single(10.0)));
    }
}
