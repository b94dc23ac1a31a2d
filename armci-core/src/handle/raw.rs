//! Implicit handles, and explicit ones that own nothing: for the C interface, and for memory that is no Rust buffer.
//!
//! Each operation takes an optional handle. Without one its handle is *implicit*: [`World::wait_rank`] and
//! [`World::wait_all`] complete what the calling thread started so. With one, [`World::wait_for`] completes all that
//! was started with it.
//!
//! # Safety
//! LOCAL-SPAN, LOCAL-SEGMENTS (see `rma`), which every caller here vouches for, until the operation has been
//! waited for.
#![allow(unsafe_code)]

use bytemuck::Pod;

use crate::accumulate::kernels::Accumulate;
use crate::am::landing::{Group, Tag, Which};
use crate::error::{Error, Result};
use crate::memory::GlobalPtr;
use crate::rma::{Completion, Segment, Strided};
use crate::world::World;

/// An explicit handle that owns nothing (`armci_hdl_t`): a number. It may be kept as such, and used again after a wait.
///
/// All operations started with it since the last wait are its own. The default stands for none.
///
/// ```
/// # fn main() -> armci_core::Result<()> {
/// use armci_core::{NbHandle, World};
///
/// let world = World::init()?;
/// let region = world.allocate(8 * 2)?;
/// world.put(&[1.0, 2.0], region.at(world.rank(), 0))?;
/// world.barrier()?;
/// let right = (world.rank() + 1) % world.size();
/// let (mut first, mut second) = (0.0, 0.0);
/// let mut handle = NbHandle::default();
/// // SAFETY: nobody touches the numbers before the waits.
/// unsafe {
///     world.get_nb_into(region.at(right, 0), &raw mut first, 1, Some(&mut handle))?;
///     world.get_nb_into(region.at(right, 1), &raw mut second, 1, None)?;
/// }
/// world.wait_for(&mut handle)?;
/// world.wait_all()?;
/// assert_eq!((first, second), (1.0, 2.0));
/// world.free(region)?;
/// world.finalize()
/// # }
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct NbHandle(u64);

impl NbHandle {
    /// The number it is, for memory that cannot hold the type; below 2^63.
    #[inline]
    pub fn to_bits(self) -> u64 {
        self.0
    }

    /// The handle of a number. One that no operation has stands for nothing, and a wait for it returns at once.
    #[inline]
    pub fn from_bits(bits: u64) -> Self {
        NbHandle(bits)
    }
}

impl World {
    /// The tag of an operation with this handle.
    #[inline]
    fn tag_of(&self, handle: Option<&mut NbHandle>) -> Tag {
        let Some(handle) = handle else { return self.origin().tag(Group::Implicit) };
        if *handle == NbHandle::default() {
            handle.0 = self.origin().number();
        }
        Tag { op: handle.0, group: Group::Explicit }
    }

    /// Waits for local completion of what this thread started with `handle`, which then stands for nothing
    /// (`ARMCI_Wait`).
    ///
    /// # Errors
    /// [`Error::Refused`] if a target did not serve it.
    #[inline]
    pub fn wait_for(&self, handle: &mut NbHandle) -> Result<()> {
        self.origin().complete(Which::Op(std::mem::take(handle).0))
    }

    /// Whether what this thread started with `handle` is locally complete (`ARMCI_Test`). Serves this rank's messages
    /// if not, so it may be asked in a loop.
    pub fn test_for(&self, handle: &NbHandle) -> bool {
        self.origin().is_complete(Which::Op(handle.0))
    }

    /// Waits for local completion of what this thread started with implicit handles and `rank` (`ARMCI_WaitProc`).
    ///
    /// # Errors
    /// [`Error::Rank`]; [`Error::Refused`] if the target did not serve it.
    pub fn wait_rank(&self, rank: usize) -> Result<()> {
        if rank >= self.size() {
            return Err(Error::Rank { rank, size: self.size() });
        }
        self.origin().complete(Which::Group(Group::Implicit, Some(rank)))
    }

    /// Waits for local completion of all that this thread started with implicit handles (`ARMCI_WaitAll`).
    ///
    /// # Errors
    /// [`Error::Refused`] if a target did not serve it.
    pub fn wait_all(&self) -> Result<()> {
        self.origin().complete(Which::Group(Group::Implicit, None))
    }

    /// Waits for local completion of all that this thread started with any handle, implicit or explicit, and `rank`, or
    /// any rank. What ARMCI programs mean by `ARMCI_WaitAll` and `ARMCI_WaitProc`, and most ARMCIs do; handles that own
    /// their buffers are complete then, too.
    ///
    /// ```
    /// # fn main() -> armci_core::Result<()> {
    /// use armci_core::{NbHandle, World};
    ///
    /// let world = World::init()?;
    /// let region = world.allocate(8)?;
    /// world.put_value(2.5, region.at(world.rank(), 0))?;
    /// world.barrier()?;
    /// let (mut number, mut handle) = (0.0, NbHandle::default());
    /// // SAFETY: nobody touches the number before the wait.
    /// unsafe { world.get_nb_into(region.at(world.rank(), 0), &raw mut number, 1, Some(&mut handle))? };
    /// world.wait_any_handle(None)?;
    /// assert_eq!(number, 2.5);
    /// world.free(region)?;
    /// world.finalize()
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Rank`]; [`Error::Refused`] if a target did not serve it.
    pub fn wait_any_handle(&self, rank: Option<usize>) -> Result<()> {
        if let Some(rank) = rank.filter(|rank| *rank >= self.size()) {
            return Err(Error::Rank { rank, size: self.size() });
        }
        let [implicit, explicit] =
            [Group::Implicit, Group::Explicit].map(|group| self.origin().complete(Which::Group(group, rank)));
        implicit.and(explicit)
    }

    /// Starts a put of `count` elements (`ARMCI_NbPut`).
    ///
    /// # Safety
    /// LOCAL-SPAN: `count` elements at `source` are readable until this has been waited for, or the thread has
    /// left with [`World::finalize`] or [`World::detach`].
    ///
    /// # Errors
    /// As [`World::put`].
    #[inline]
    #[track_caller]
    pub unsafe fn put_nb_from<T: Pod>(
        &self,
        source: *const T,
        count: usize,
        target: GlobalPtr<T>,
        handle: Option<&mut NbHandle>,
    ) -> Result<()> {
        let completion = Completion::Later(self.tag_of(handle));
        // SAFETY: LOCAL-SPAN.
        unsafe { self.put_from_by(source, count, target, completion) }
    }

    /// Starts a get of `count` elements (`ARMCI_NbGet`).
    ///
    /// # Safety
    /// LOCAL-SPAN: `count` elements at `target` are writable, and this program refers to them by nothing else, until
    /// this has been waited for, or the thread has left with [`World::finalize`] or [`World::detach`].
    ///
    /// # Errors
    /// As [`World::get`].
    #[inline]
    #[track_caller]
    pub unsafe fn get_nb_into<T: Pod>(
        &self,
        source: GlobalPtr<T>,
        target: *mut T,
        count: usize,
        handle: Option<&mut NbHandle>,
    ) -> Result<()> {
        let completion = Completion::Later(self.tag_of(handle));
        // SAFETY: LOCAL-SPAN.
        unsafe { self.get_into_by(source, target, count, completion) }
    }

    /// Starts an accumulate of `count` elements (`ARMCI_NbAcc`).
    ///
    /// # Safety
    /// As [`World::put_nb_from`]; and nobody writes the elements meanwhile.
    ///
    /// # Errors
    /// As [`World::accumulate`].
    #[inline]
    #[track_caller]
    pub unsafe fn accumulate_nb_from<T: Accumulate>(
        &self,
        alpha: T,
        source: *const T,
        count: usize,
        target: GlobalPtr<T>,
        handle: Option<&mut NbHandle>,
    ) -> Result<()> {
        let completion = Completion::Later(self.tag_of(handle));
        // SAFETY: LOCAL-SPAN.
        unsafe { self.accumulate_from_by(alpha, source, count, target, completion) }
    }

    /// Starts a put of a patch (`ARMCI_NbPutS`).
    ///
    /// # Safety
    /// As [`World::put_nb_from`], for all elements of the patch that begins at `source`.
    ///
    /// # Errors
    /// As [`World::put_strided`].
    #[track_caller]
    pub unsafe fn put_strided_nb_from<T: Pod>(
        &self,
        source: *const T,
        target: GlobalPtr<T>,
        shape: &Strided<'_>,
        handle: Option<&mut NbHandle>,
    ) -> Result<()> {
        let completion = Completion::Later(self.tag_of(handle));
        // SAFETY: LOCAL-SPAN.
        unsafe { self.put_strided_by(source, target, shape, completion) }
    }

    /// Starts a get into a patch (`ARMCI_NbGetS`).
    ///
    /// # Safety
    /// As [`World::get_nb_into`], for all elements of the patch that begins at `target`.
    ///
    /// # Errors
    /// As [`World::get_strided`].
    #[track_caller]
    pub unsafe fn get_strided_nb_into<T: Pod>(
        &self,
        source: GlobalPtr<T>,
        target: *mut T,
        shape: &Strided<'_>,
        handle: Option<&mut NbHandle>,
    ) -> Result<()> {
        let completion = Completion::Later(self.tag_of(handle));
        // SAFETY: LOCAL-SPAN.
        unsafe { self.get_strided_by(source, target, shape, completion) }
    }

    /// Starts an accumulate of a patch (`ARMCI_NbAccS`).
    ///
    /// # Safety
    /// As [`World::accumulate_nb_from`], for all elements of the patch that begins at `source`.
    ///
    /// # Errors
    /// As [`World::accumulate_strided`].
    #[track_caller]
    pub unsafe fn accumulate_strided_nb_from<T: Accumulate>(
        &self,
        alpha: T,
        source: *const T,
        target: GlobalPtr<T>,
        shape: &Strided<'_>,
        handle: Option<&mut NbHandle>,
    ) -> Result<()> {
        let completion = Completion::Later(self.tag_of(handle));
        // SAFETY: LOCAL-SPAN.
        unsafe { self.accumulate_strided_by(alpha, source, target, shape, completion) }
    }

    /// Starts a put of segments (`ARMCI_NbPutV`).
    ///
    /// # Safety
    /// As [`World::put_nb_from`], for every segment. `segments` and its clones yield the same.
    ///
    /// # Errors
    /// As [`World::put_vector`].
    #[track_caller]
    pub unsafe fn put_vector_nb_from<T: Pod>(
        &self,
        segments: impl Iterator<Item = Segment<T>> + Clone,
        handle: Option<&mut NbHandle>,
    ) -> Result<()> {
        self.tag_of(handle);
        // SAFETY: LOCAL-SEGMENTS.
        unsafe { self.put_vector_from(segments) }
    }

    /// Starts a get into segments (`ARMCI_NbGetV`).
    ///
    /// # Safety
    /// As [`World::get_nb_into`], for every segment. `segments` and its clones yield the same.
    ///
    /// # Errors
    /// As [`World::get_vector`].
    #[track_caller]
    pub unsafe fn get_vector_nb_into<T: Pod>(
        &self,
        segments: impl Iterator<Item = Segment<T>> + Clone,
        handle: Option<&mut NbHandle>,
    ) -> Result<()> {
        let completion = Completion::Later(self.tag_of(handle));
        // SAFETY: LOCAL-SEGMENTS.
        unsafe { self.get_vector_by(segments, completion) }
    }

    /// Starts an accumulate of segments (`ARMCI_NbAccV`).
    ///
    /// # Safety
    /// As [`World::accumulate_nb_from`], for every segment. `segments` and its clones yield the same.
    ///
    /// # Errors
    /// As [`World::accumulate_vector`].
    #[track_caller]
    pub unsafe fn accumulate_vector_nb_from<T: Accumulate>(
        &self,
        alpha: T,
        segments: impl Iterator<Item = Segment<T>> + Clone,
        handle: Option<&mut NbHandle>,
    ) -> Result<()> {
        self.tag_of(handle);
        // SAFETY: LOCAL-SEGMENTS.
        unsafe { self.accumulate_vector_from(alpha, segments) }
    }
}
