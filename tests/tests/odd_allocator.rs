//! Registered memory that is aligned to no more than its type asks for: a file of its own, for its allocator.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};

use armci_core::Error;
use tests::matrix;

/// Gives memory of alignment 1 at odd addresses.
struct Odd;

// SAFETY: the system's, one byte further on where nobody asked for any alignment, with a byte more.
unsafe impl GlobalAlloc for Odd {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let shift = usize::from(layout.align() == 1);
        // SAFETY: as the caller promises; the byte more is there.
        unsafe {
            let at = System.alloc(larger(layout));
            if at.is_null() { at } else { at.add(shift) }
        }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        let shift = usize::from(layout.align() == 1);
        // SAFETY: as `alloc` gave it.
        unsafe { System.dealloc(at.sub(shift), larger(layout)) }
    }
}

fn larger(layout: Layout) -> Layout {
    if layout.align() != 1 {
        return layout;
    }
    Layout::from_size_align(layout.size() + 1, 16).expect("one byte more fits")
}

#[global_allocator]
static ALLOCATOR: Odd = Odd;

#[test]
fn what_needs_alignment_is_refused_where_there_is_none() {
    matrix(|world| {
        let bytes = world.register_memory(vec![0u8; 100]).unwrap();
        assert_eq!(bytes.as_ptr().addr() % 2, 1);
        let right = (world.rank() + 1) % world.size();
        let there = world.all_gather(&[bytes.at(0)]).unwrap()[right];
        assert!(matches!(world.fetch_add(there.cast::<i64>(), 1), Err(Error::Refused { .. })));
        assert!(matches!(world.fetch_add(there.cast::<i32>().add(1), 1), Err(Error::Refused { .. })));
        world.accumulate(1.0, &[1.0; 4], there.cast::<f64>()).unwrap();
        assert!(matches!(world.fence(right), Err(Error::Refused { .. })));
        world.notify(there.cast(), 1).unwrap();
        assert!(matches!(world.fence(right), Err(Error::Refused { .. })));
        assert!(matches!(world.wait_value(bytes.at(0).cast(), 1), Err(Error::Misaligned { .. })));
        // Copies need none.
        world.put(&[7u8; 100], there).unwrap();
        world.barrier().unwrap();
        assert_eq!(bytes.unregister(), [7; 100]);
        world.barrier().unwrap();
    });
}
