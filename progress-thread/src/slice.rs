//! How long the calling thread may run at once, as the scheduler is told.
//!
//! A thread that wakes on a core where another computes takes it over only if its turn ends sooner. Linux from 6.12 on
//! lets a thread say how long its turns are; earlier ones take no notice, which costs time and nothing else.
//!
//! # Safety
//! OWN-ATTRIBUTES: the kernel reads the attributes from our stack, as many bytes as they say they have, and number 0 is
//! the calling thread.
#![allow(unsafe_code)]

use std::time::Duration;

/// Says so for the calling thread; whether the system has taken it.
pub(crate) fn shorten(slice: Duration) -> bool {
    // SAFETY: OWN-ATTRIBUTES: zeroes are valid ones.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    attributes.size = size_of::<libc::sched_attr>() as u32;
    // SAFETY: OWN-ATTRIBUTES; what is not changed below stays as it is.
    let read = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, attributes.size, 0) };
    if read != 0 || attributes.sched_policy != libc::SCHED_OTHER as u32 {
        return false;
    }
    attributes.sched_runtime = slice.as_nanos() as u64;
    // SAFETY: OWN-ATTRIBUTES.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_slice_is_taken_by_whoever_knows_of_it() {
        std::thread::spawn(|| {
            assert!(shorten(Duration::from_micros(100)));
            assert!(shorten(Duration::from_micros(200)), "it can be changed");
        })
        .join()
        .unwrap();
    }
}
