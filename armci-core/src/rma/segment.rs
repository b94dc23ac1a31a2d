//! A piece of a vector transfer.

use bytemuck::Pod;

use crate::memory::GlobalPtr;

/// One segment between memory that is no slice and that of a rank.
#[derive(Debug, Clone, Copy)]
pub struct Segment<T> {
    /// Where it begins here; put and accumulate only read there.
    pub local: *mut T,
    /// Where it begins there.
    pub remote: GlobalPtr<T>,
    /// How many elements it has.
    pub count: usize,
}

impl<T: Pod> Segment<T> {
    /// Its bytes; as many as fit a number if there are more, which no region has.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.count.saturating_mul(size_of::<T>())
    }

    /// The same in bytes.
    #[inline]
    pub(crate) fn in_bytes(self) -> Segment<u8> {
        Segment { local: self.local.cast(), remote: self.remote.cast(), count: self.bytes() }
    }
}
