//! Moving patches between arrays and buffers: put, get, accumulate.
//!
//! A call is checked first, whole: [`Section`] says what is meant, and the buffer has its shape. Then it is split
//! by block ([`pieces`]), and each piece is one strided transfer of the runtime, none of which waits for another.
//!
//! # Safety
//! VIEW-LIVE: a view of `ndarray` borrows its elements for the call, so those it describes are readable (and, for a
//! mutable view, ours alone); its pointer and strides, with a section of its shape, describe no others.
#![allow(unsafe_code)]

mod nonblocking;
mod periodic;
mod pieces;
mod scope;

use armci_core::{Accumulate, GlobalPtr, NbHandle, Result as Outcome, World};
use bytemuck::Pod;
use ndarray::{Array, ArrayBase, ArrayView, ArrayViewMut, Axis, Dimension, IntoDimension, RawData};

use crate::array::GlobalArray;
use crate::axes::Axes;
use crate::error::{Error, Result};
use crate::select::{Section, Select};
use pieces::Piece;

pub use nonblocking::PatchHandle;
pub use scope::{PatchScope, ScopedPatch, nonblocking};

impl<T: Pod, D: Dimension> GlobalArray<T, D> {
    /// Copies `source` into a patch (`NGA_Put`, `NGA_Strided_put`). On return `source` may be reused; others see it after a sync.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`], [`Error::BufferShape`]; nothing was written then.
    #[track_caller]
    pub fn put<'a, S: Select<D>>(&self, at: S, source: impl Into<ArrayView<'a, T, S::Out>>) -> Result<()> {
        let (section, mut copy) = (self.section(&at)?, None);
        let source = self.readable(&section, source.into(), &mut copy)?;
        // SAFETY: VIEW-LIVE.
        unsafe { self.put_section(&section, source.as_ptr(), &section.strides(source.strides())) }
    }

    /// Fetches a patch (`NGA_Get`, `NGA_Strided_get`).
    ///
    /// # Errors
    /// [`Error::OutOfBounds`].
    #[track_caller]
    pub fn get<S: Select<D>>(&self, at: S) -> Result<Array<T, S::Out>> {
        let section = self.section(&at)?;
        let mut buffer = Array::from_elem(section.buffer_shape::<S::Out>(), T::zeroed());
        // SAFETY: VIEW-LIVE, of a buffer of the section's shape.
        unsafe { self.get_section(&section, buffer.as_mut_ptr(), &section.strides(buffer.strides()))? };
        turn(&section, &mut buffer);
        Ok(buffer)
    }

    /// Fetches a patch into a buffer of its shape (`NGA_Get`, `NGA_Strided_get`).
    ///
    /// # Errors
    /// [`Error::OutOfBounds`], [`Error::BufferShape`]; nothing was written then.
    #[track_caller]
    pub fn get_into<'a, S: Select<D>>(&self, at: S, target: impl Into<ArrayViewMut<'a, T, S::Out>>) -> Result<()> {
        let (section, mut target) = (self.section(&at)?, target.into());
        self.fits(&section, target.shape())?;
        turn(&section, &mut target);
        let strides = section.strides(target.strides());
        if is_forward(&section, &strides) {
            // SAFETY: VIEW-LIVE.
            unsafe { self.get_section(&section, target.as_mut_ptr(), &strides) }
        } else {
            turn(&section, &mut target);
            target.assign(&self.get(at)?);
            Ok(())
        }
    }

    /// Writes one element.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`].
    #[inline]
    #[track_caller]
    pub fn put_element(&self, index: impl IntoDimension<Dim = D>, value: T) -> Result<()> {
        let index = index.into_dimension();
        let place = self.place(&index)?;
        match self.group.world().put_value(value, place) {
            Ok(()) => Ok(()),
            Err(source) => Err(self.element_refused(&index, place, source)),
        }
    }

    /// Reads one element.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`].
    #[inline]
    #[track_caller]
    pub fn get_element(&self, index: impl IntoDimension<Dim = D>) -> Result<T> {
        let index = index.into_dimension();
        let place = self.place(&index)?;
        match self.group.world().get_value(place) {
            Ok(value) => Ok(value),
            Err(source) => Err(self.element_refused(&index, place, source)),
        }
    }

    /// Refuses a buffer that has not the section's shape.
    #[inline]
    fn fits(&self, section: &Section, buffer: &[usize]) -> Result<()> {
        let wanted = section.len.iter().zip(section.kept.iter()).filter(|(_, kept)| **kept).map(|(len, _)| len);
        if wanted.eq(buffer) { Ok(()) } else { Err(self.misfit(section, buffer)) }
    }

    /// A source as transfers take it: of the section's shape, all axes forward. The view itself, or of a copy.
    #[inline]
    fn readable<'a, Out: Dimension>(
        &self,
        section: &Section,
        mut source: ArrayView<'a, T, Out>,
        copy: &'a mut Option<Array<T, Out>>,
    ) -> Result<ArrayView<'a, T, Out>> {
        self.fits(section, source.shape())?;
        turn(section, &mut source);
        if is_forward(section, &section.strides(source.strides())) {
            return Ok(source);
        }
        Ok(copy.insert(source.as_standard_layout().into_owned()).view())
    }

    #[cold]
    fn misfit(&self, section: &Section, shape: &[usize]) -> Error {
        let kept = section.len.iter().zip(section.kept.iter()).filter(|(_, kept)| **kept);
        Error::BufferShape {
            array: self.name.clone(),
            patch: section.patch().to_string(),
            expected: kept.map(|(len, _)| *len).collect(),
            buffer: shape.to_vec(),
            rank: self.group.rank(),
        }
    }

    #[cold]
    fn refused(&self, section: &Section, place: GlobalPtr<T>, source: armci_core::Error) -> Error {
        Error::Transfer { array: self.name.clone(), patch: section.patch().to_string(), rank: place.rank(), source }
    }

    /// # Safety
    /// VIEW-LIVE for the elements that the section has at `source`.
    #[track_caller]
    unsafe fn put_section(&self, section: &Section, source: *const T, strides: &Axes<isize>) -> Result<()> {
        let world = self.group.world();
        if let Some(piece) = self.lone_piece(section, strides) {
            // SAFETY: VIEW-LIVE: the piece is the section.
            let put = unsafe {
                match piece.row() {
                    Some(count) => world.put_from(source, count, piece.place),
                    None => world.put_strided_from(source, piece.place, &piece.shape()),
                }
            };
            return self.told(section, &piece, put);
        }
        for piece in self.pieces(section, strides) {
            let from = source.wrapping_offset(piece.first);
            // SAFETY: VIEW-LIVE: the piece's elements, which begin `first` elements into the buffer.
            let put = unsafe { world.put_strided_from(from, piece.place, &piece.shape()) };
            self.told(section, &piece, put)?;
        }
        Ok(())
    }

    /// Starts puts of all pieces of a section.
    ///
    /// # Safety
    /// VIEW-LIVE for the elements that the section has at `source`, until the handle was waited for in `world`.
    #[track_caller]
    unsafe fn put_section_nb(
        &self,
        world: &World,
        section: &Section,
        source: *const T,
        strides: &Axes<isize>,
        handle: &mut NbHandle,
    ) -> Result<()> {
        for piece in self.pieces(section, strides) {
            let from = source.wrapping_offset(piece.first);
            // SAFETY: VIEW-LIVE: the piece's elements, which begin `first` elements into the buffer.
            let put = unsafe { world.put_strided_nb_from(from, piece.place, &piece.shape(), Some(handle)) };
            self.told(section, &piece, put)?;
        }
        Ok(())
    }

    /// # Safety
    /// VIEW-LIVE for the elements that the section has at `target`.
    #[track_caller]
    unsafe fn get_section(&self, section: &Section, target: *mut T, strides: &Axes<isize>) -> Result<()> {
        let world = self.group.world();
        if let Some(piece) = self.lone_piece(section, strides) {
            // SAFETY: VIEW-LIVE: the piece is the section.
            let got = unsafe {
                match piece.row() {
                    Some(count) => world.get_into(piece.place, target, count),
                    None => world.get_strided_into(piece.place, target, &piece.shape()),
                }
            };
            return self.told(section, &piece, got);
        }
        let mut handle = NbHandle::default();
        // SAFETY: VIEW-LIVE.
        let started = unsafe { self.get_section_nb(world, section, target, strides, &mut handle) };
        // All have answered before the buffer is given back, also if one refused.
        let answered = world.wait_for(&mut handle).map_err(|source| self.runtime(source));
        started.and(answered)
    }

    /// Starts gets of all pieces of a section, from all owners at once.
    ///
    /// # Safety
    /// VIEW-LIVE for the elements that the section has at `target`, until the handle was waited for in `world`.
    #[track_caller]
    unsafe fn get_section_nb(
        &self,
        world: &World,
        section: &Section,
        target: *mut T,
        strides: &Axes<isize>,
        handle: &mut NbHandle,
    ) -> Result<()> {
        for piece in self.pieces(section, strides) {
            let to = target.wrapping_offset(piece.first);
            // SAFETY: VIEW-LIVE: the piece's elements, which begin `first` elements into the buffer.
            let got = unsafe { world.get_strided_nb_into(piece.place, to, &piece.shape(), Some(handle)) };
            self.told(section, &piece, got)?;
        }
        Ok(())
    }

    /// What became of a piece of a section.
    #[inline]
    fn told(&self, section: &Section, piece: &Piece<T>, outcome: Outcome<()>) -> Result<()> {
        outcome.map_err(|source| self.refused(section, piece.place, source))
    }
}

impl<T: Accumulate, D: Dimension> GlobalArray<T, D> {
    /// Adds `alpha` times `source` to a patch (`NGA_Acc`, `NGA_Strided_acc`): atomic per element, in any order with
    /// other accumulates. On return `source` may be reused; others see it after a sync.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`], [`Error::BufferShape`]; nothing was added then.
    #[track_caller]
    pub fn accumulate<'a, S: Select<D>>(
        &self,
        at: S,
        alpha: T,
        source: impl Into<ArrayView<'a, T, S::Out>>,
    ) -> Result<()> {
        let (section, mut copy) = (self.section(&at)?, None);
        let source = self.readable(&section, source.into(), &mut copy)?;
        // SAFETY: VIEW-LIVE.
        unsafe { self.accumulate_section(&section, alpha, source.as_ptr(), &section.strides(source.strides())) }
    }

    /// # Safety
    /// VIEW-LIVE for the elements that the section has at `source`.
    #[track_caller]
    unsafe fn accumulate_section(
        &self,
        section: &Section,
        alpha: T,
        source: *const T,
        strides: &Axes<isize>,
    ) -> Result<()> {
        let world = self.group.world();
        if let Some(piece) = self.lone_piece(section, strides) {
            // SAFETY: VIEW-LIVE: the piece is the section.
            let added = unsafe {
                match piece.row() {
                    Some(count) => world.accumulate_from(alpha, source, count, piece.place),
                    None => world.accumulate_strided_from(alpha, source, piece.place, &piece.shape()),
                }
            };
            return self.told(section, &piece, added);
        }
        for piece in self.pieces(section, strides) {
            let from = source.wrapping_offset(piece.first);
            // SAFETY: VIEW-LIVE: the piece's elements, which begin `first` elements into the buffer.
            let added = unsafe { world.accumulate_strided_from(alpha, from, piece.place, &piece.shape()) };
            self.told(section, &piece, added)?;
        }
        Ok(())
    }

    /// Starts accumulates of all pieces of a section.
    ///
    /// # Safety
    /// VIEW-LIVE for the elements that the section has at `source`, until the handle was waited for in `world`.
    #[track_caller]
    unsafe fn accumulate_section_nb(
        &self,
        world: &World,
        section: &Section,
        alpha: T,
        (source, strides): (*const T, &Axes<isize>),
        handle: &mut NbHandle,
    ) -> Result<()> {
        for piece in self.pieces(section, strides) {
            let (from, shape) = (source.wrapping_offset(piece.first), piece.shape());
            // SAFETY: VIEW-LIVE: the piece's elements, which begin `first` elements into the buffer.
            let added = unsafe { world.accumulate_strided_nb_from(alpha, from, piece.place, &shape, Some(handle)) };
            self.told(section, &piece, added)?;
        }
        Ok(())
    }
}

/// Turns the axes that a section runs along backwards.
#[inline]
fn turn<S: RawData, D: Dimension>(section: &Section, buffer: &mut ArrayBase<S, D>) {
    if !section.backward.contains(&true) {
        return;
    }
    let kept = section.backward.iter().zip(section.kept.iter()).filter(|(_, kept)| **kept);
    for (axis, (backward, _)) in kept.enumerate() {
        if *backward {
            buffer.invert_axis(Axis(axis));
        }
    }
}

/// Whether a transfer takes a buffer with these strides as it is.
#[inline]
fn is_forward(section: &Section, strides: &Axes<isize>) -> bool {
    strides.iter().zip(section.len.iter()).all(|(stride, len)| *stride >= 0 || *len < 2)
}
