//! The handlers behind put, get, accumulate, read-modify-write and flags by message.
//!
//! Whatever a message asks for is checked against this rank's own region table
//! before a byte moves.
//!
//! # Safety
//! REGION-LIVE: what lies inside the bounds that the region table gives is
//! mapped. REQUEST-SLOT (see `transport/shm`) for payloads and replies.
#![allow(unsafe_code)]

use bytemuck::{Pod, Zeroable};

use crate::accumulate::kernels::ElementKind;
use crate::copy::Patch;
use crate::memory::RegionId;
use crate::memory::region::Access;
use crate::memory::together::Common;
use crate::node::Node;
use crate::node::message::{REPLY_INLINE_MAX, STAGING_BYTES};
use crate::transport::{Incoming, Remote, Rmw, RmwKind, Transport, Wire};

/// Ids of the built-in handlers.
pub(crate) const PUT: u16 = 1;
pub(crate) const GET: u16 = 2;
pub(crate) const ACCUMULATE: u16 = 3;
pub(crate) const RMW: u16 = 4;
pub(crate) const SIGNAL: u16 = 5;
pub(crate) const PUT_LIST: u16 = 6;
pub(crate) const GET_LIST: u16 = 7;
pub(crate) const ACCUMULATE_LIST: u16 = 8;
pub(crate) const DESCRIBE: u16 = 9;
pub(crate) const LOCATE: u16 = 10;
pub(crate) const PUT_PLANES: u16 = 11;
pub(crate) const GET_PLANES: u16 = 12;
pub(crate) const ACCUMULATE_PLANES: u16 = 13;

/// Whether messages of a handler only transfer data between a region and their sender.
pub(crate) fn transfers(handler: u16) -> bool {
    (handler != SIGNAL && (PUT..=ACCUMULATE_LIST).contains(&handler))
        || (PUT_PLANES..=ACCUMULATE_PLANES).contains(&handler)
}

/// Bytes that say where a segment of a list lies in the target's part; what is put or added there follows them.
pub(crate) const RECORD: usize = size_of::<u64>();
/// Segments of a list whose records hold nothing besides: what a chunk has room for.
pub(crate) const LIST_MAX: usize = STAGING_BYTES / RECORD;

/// Rows in the target's memory, as every transfer message names them.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(crate) struct Rows {
    pub(crate) region: u64,
    /// First byte, in the target's part of the region.
    pub(crate) offset: u64,
    /// Bytes from the start of one row to the start of the next.
    pub(crate) stride: u64,
    pub(crate) row: u32,
    pub(crate) rows: u32,
}

impl Rows {
    /// All bytes of the rows.
    pub(crate) fn bytes(&self) -> usize {
        self.row as usize * self.rows as usize
    }

    /// The patch between these rows, strided, and packed bytes; `scatter` if the packed side is the source.
    fn patch(&self, scatter: bool) -> Patch {
        let strides = [[self.stride as usize], [self.row as usize]];
        let [dst, src] = if scatter { [&strides[0], &strides[1]] } else { [&strides[1], &strides[0]] };
        Patch::new(dst, src, &[self.row as usize, self.rows as usize])
    }
}

/// Levels around those of rows that a message names.
pub(crate) const OUTER: usize = 3;

/// Rows at up to [`OUTER`] levels more, innermost first, as messages name them.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(crate) struct Planes {
    pub(crate) rows: Rows,
    /// Bytes from the start of one to the start of the next.
    pub(crate) strides: [u64; OUTER],
    /// How many; 1 at a level that is not there.
    pub(crate) counts: [u32; OUTER],
    unused: u32,
}

impl Planes {
    /// Levels of a patch that fit.
    pub(crate) const LEVELS: usize = 1 + OUTER;

    /// Rows of `row` bytes from `offset` of a region on, at these levels: how many, and how far apart.
    pub(crate) fn new(region: RegionId, offset: u64, row: usize, levels: impl Iterator<Item = (usize, usize)>) -> Self {
        let rows = Rows { region: region.to_bits(), offset, stride: row as u64, row: row as u32, rows: 1 };
        let mut planes = Planes { rows, strides: [0; OUTER], counts: [1; OUTER], unused: 0 };
        for (level, (count, stride)) in levels.enumerate() {
            let (counts, strides) = match level.checked_sub(1) {
                None => (&mut planes.rows.rows, &mut planes.rows.stride),
                Some(outer) => (&mut planes.counts[outer], &mut planes.strides[outer]),
            };
            (*counts, *strides) = (count as u32, stride as u64);
        }
        planes
    }

    fn outer(&self) -> impl Iterator<Item = (u64, u64)> {
        self.counts.into_iter().map(u64::from).zip(self.strides)
    }

    /// All bytes; none if that is no number.
    fn bytes(&self) -> Option<usize> {
        self.counts.iter().try_fold(self.rows.bytes(), |bytes, count| bytes.checked_mul(*count as usize))
    }

    /// As [`Rows::patch`].
    fn patch(&self, scatter: bool) -> Patch {
        let mut patch = self.rows.patch(scatter);
        let mut packed = self.rows.bytes();
        for (count, stride) in self.outer() {
            let (count, stride) = (count as usize, stride as usize);
            let (dst, src) = if scatter { (stride, packed) } else { (packed, stride) };
            patch.push(count, dst, src);
            packed *= count;
        }
        patch
    }

    /// Where the last of those rows begin whose levels are around them.
    fn last(&self, align: u64) -> Result<u64, String> {
        let mut last = Some(self.rows.offset);
        for (count, stride) in self.outer() {
            if count > 1 && !stride.is_multiple_of(align) {
                return Err(format!("{self:?} are not aligned to {align} bytes"));
            }
            let around = count.saturating_sub(1).checked_mul(stride);
            last = last.zip(around).and_then(|(last, around)| last.checked_add(around));
        }
        last.ok_or_else(|| format!("{self:?} leave everything"))
    }

    /// Where they lie in this rank's slot, once they are known to lie inside their region.
    fn locate(&self, node: &Node, align: u64) -> Result<Remote, String> {
        // If the first rows and the last ones lie there, so do all between them.
        locate(node, &Rows { offset: self.last(align)?, ..self.rows }, align)?;
        locate(node, &self.rows, align)
    }
}

/// What an accumulate of planes says besides.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(crate) struct AccumulatePlanesArgs {
    pub(crate) planes: Planes,
    pub(crate) alpha: [u8; 16],
    pub(crate) kind: u64,
}

/// What an accumulate message says besides.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(crate) struct AccumulateArgs {
    pub(crate) rows: Rows,
    pub(crate) alpha: [u8; 16],
    pub(crate) kind: u64,
}

/// Segments anywhere in a region, as list messages name them; the records follow.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(crate) struct List {
    pub(crate) region: u64,
    /// Bytes of each segment.
    pub(crate) row: u32,
    pub(crate) segments: u32,
}

/// What an accumulate of a list says besides.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(crate) struct AccumulateListArgs {
    pub(crate) list: List,
    pub(crate) alpha: [u8; 16],
    pub(crate) kind: u64,
}

/// The arguments of a read-modify-write message.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(crate) struct RmwArgs {
    pub(crate) region: u64,
    pub(crate) offset: u64,
    pub(crate) operand: u64,
    pub(crate) compare: u64,
    /// 0 fetch-and-add, 1 swap, 2 compare-and-swap.
    pub(crate) kind: u32,
    /// 8 or 4 bytes.
    pub(crate) bytes: u32,
}

impl RmwArgs {
    /// What a message says for `rmw` at `offset` of `region`.
    pub(crate) fn new(region: u64, offset: u64, rmw: Rmw) -> Self {
        let Rmw { kind, wide, operand, compare } = rmw;
        let kind = match kind {
            RmwKind::FetchAdd => 0,
            RmwKind::Swap => 1,
            RmwKind::CompareSwap => 2,
        };
        RmwArgs { region, offset, operand, compare, kind, bytes: if wide { 8 } else { 4 } }
    }

    /// What it asks for; `None` if that makes no sense.
    pub(crate) fn rmw(&self) -> Option<Rmw> {
        let kind = match self.kind {
            0 => RmwKind::FetchAdd,
            1 => RmwKind::Swap,
            2 => RmwKind::CompareSwap,
            _ => return None,
        };
        let wide = match self.bytes {
            8 => true,
            4 => false,
            _ => return None,
        };
        Some(Rmw { kind, wide, operand: self.operand, compare: self.compare })
    }
}

/// The arguments of a message that sets a flag.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(crate) struct SignalArgs {
    pub(crate) region: u64,
    pub(crate) offset: u64,
    pub(crate) value: u64,
}

/// Serves a message of this crate; says how long the reply is.
pub(crate) fn serve(node: &Node, transport: &Wire, incoming: &Incoming<'_>) -> Result<usize, String> {
    match incoming.handler {
        PUT => {
            let (rows, data) = arguments::<Rows>(incoming)?;
            let to = locate(node, &rows, 1)?;
            let data = payload(incoming, data, Some(rows.bytes()))?;
            // SAFETY: REGION-LIVE by `locate`; the payload is as long as the rows.
            unsafe { transport.put_patch(to, data.as_ptr(), &rows.patch(true)) };
            Ok(0)
        }
        GET => {
            let (rows, _) = arguments::<Rows>(incoming)?;
            let from = locate(node, &rows, 1)?;
            let (bytes, to) = reply_of(incoming, Some(rows.bytes()))?;
            // SAFETY: REGION-LIVE by `locate`; REQUEST-SLOT, and the reply fits.
            unsafe { transport.get_patch(from, to, &rows.patch(false)) };
            Ok(bytes)
        }
        ACCUMULATE => {
            let (AccumulateArgs { rows, alpha, kind }, data) = arguments(incoming)?;
            let kind = element_kind(kind, rows.row)?;
            let to = locate(node, &rows, kind.align() as u64)?;
            let data = payload(incoming, data, Some(rows.bytes()))?;
            // SAFETY: REGION-LIVE and aligned by `locate`; whole elements; the payload is as long as the rows.
            unsafe { transport.accumulate(to, data.as_ptr(), &rows.patch(true), kind, &alpha) };
            Ok(0)
        }
        RMW => {
            let (args, _) = arguments::<RmwArgs>(incoming)?;
            let rmw = args.rmw().ok_or("the read-modify-write makes no sense")?;
            let rows = Rows { region: args.region, offset: args.offset, stride: 0, row: args.bytes, rows: 1 };
            let at = locate(node, &rows, args.bytes.into())?;
            // SAFETY: REGION-LIVE and aligned by `locate`.
            let found = unsafe { transport.rmw(at, rmw) };
            // SAFETY: REQUEST-SLOT; 8 bytes fit the short reply.
            unsafe { incoming.reply_inline.copy_from_nonoverlapping(found.to_ne_bytes().as_ptr(), 8) };
            Ok(8)
        }
        SIGNAL => {
            let (args, _) = arguments::<SignalArgs>(incoming)?;
            let rows = Rows { region: args.region, offset: args.offset, stride: 0, row: 8, rows: 1 };
            let at = locate(node, &rows, 8)?;
            // SAFETY: REGION-LIVE and aligned by `locate`.
            unsafe { transport.signal(at, args.value) };
            Ok(0)
        }
        PUT_LIST => {
            let (list, data) = arguments::<List>(incoming)?;
            for (to, data) in Records::new(node, incoming, list, data, list.row, 1)?.iter() {
                // SAFETY: REGION-LIVE by `Records`; the record holds the row.
                unsafe { transport.put(to, data.as_ptr(), data.len()) };
            }
            Ok(0)
        }
        GET_LIST => {
            let (list, data) = arguments::<List>(incoming)?;
            let records = Records::new(node, incoming, list, data, 0, 1)?;
            let (row, segments) = (list.row as usize, list.segments as usize);
            let bytes = row * segments;
            if bytes > incoming.reply_room || segments > LIST_MAX {
                return Err(format!("{bytes} bytes in {segments} segments were asked for in one message"));
            }
            // The reply may be written where the records lie.
            let mut places = [0; LIST_MAX];
            places.iter_mut().zip(records.iter()).for_each(|(place, (from, _))| *place = from.offset);
            let mut to = if bytes <= REPLY_INLINE_MAX { incoming.reply_inline } else { incoming.reply_staged };
            let slot = node.who().local_rank;
            for offset in &places[..segments] {
                // SAFETY: REGION-LIVE by `Records`; REQUEST-SLOT, and the reply fits.
                unsafe {
                    transport.get(Remote { slot, offset: *offset }, to, row);
                    to = to.add(row);
                }
            }
            Ok(bytes)
        }
        ACCUMULATE_LIST => {
            let (AccumulateListArgs { list, alpha, kind }, data) = arguments(incoming)?;
            let kind = element_kind(kind, list.row)?;
            let whole = Patch::new(&[], &[], &[list.row as usize]);
            for (to, data) in Records::new(node, incoming, list, data, list.row, kind.align() as u64)?.iter() {
                // SAFETY: REGION-LIVE and aligned by `Records`; whole elements; the record holds the row.
                unsafe { transport.accumulate(to, data.as_ptr(), &whole, kind, &alpha) };
            }
            Ok(0)
        }
        PUT_PLANES => {
            let (planes, data) = arguments::<Planes>(incoming)?;
            let to = planes.locate(node, 1)?;
            let data = payload(incoming, data, planes.bytes())?;
            // SAFETY: REGION-LIVE by `locate`; the payload is as long as the planes.
            unsafe { transport.put_patch(to, data.as_ptr(), &planes.patch(true)) };
            Ok(0)
        }
        GET_PLANES => {
            let (planes, _) = arguments::<Planes>(incoming)?;
            let from = planes.locate(node, 1)?;
            let (bytes, to) = reply_of(incoming, planes.bytes())?;
            // SAFETY: REGION-LIVE by `locate`; REQUEST-SLOT, and the reply fits.
            unsafe { transport.get_patch(from, to, &planes.patch(false)) };
            Ok(bytes)
        }
        ACCUMULATE_PLANES => {
            let (AccumulatePlanesArgs { planes, alpha, kind }, data) = arguments(incoming)?;
            let kind = element_kind(kind, planes.rows.row)?;
            let to = planes.locate(node, kind.align() as u64)?;
            let data = payload(incoming, data, planes.bytes())?;
            // SAFETY: REGION-LIVE and aligned by `locate`; whole elements; the payload is as long as the planes.
            unsafe { transport.accumulate(to, data.as_ptr(), &planes.patch(true), kind, &alpha) };
            Ok(0)
        }
        DESCRIBE => {
            let (id, _) = arguments::<u64>(incoming)?;
            let id = RegionId::from_bits(id);
            // The one thing a refusal may mean; its words are not read.
            let part = node.mine().regions.part(id).ok_or_else(|| format!("region {id} does not exist there"))?;
            let Access { address, key } = transport.export(id, part).unwrap_or(Access::NONE);
            let words = [part.offset, part.len, address, key];
            // SAFETY: REQUEST-SLOT; 32 bytes fit the short reply.
            unsafe { incoming.reply_inline.copy_from_nonoverlapping(words.as_ptr().cast(), size_of_val(&words)) };
            Ok(size_of_val(&words))
        }
        LOCATE => {
            let (address, _) = arguments::<u64>(incoming)?;
            let mine = node.who().local_rank;
            let at = node.window().resolve(address as usize).filter(|(slot, _)| *slot == mine);
            // The one thing a refusal may mean; its words are not read.
            let (id, part, behind) = at
                .and_then(|(slot, offset)| node.place_at(slot, offset))
                .ok_or_else(|| format!("nothing lies at {address:#x}"))?;
            let Common { rank, name } = node.together().common(id);
            let words = [id.to_bits(), address - behind, part.len, rank, name];
            // SAFETY: REQUEST-SLOT; 40 bytes fit the short reply.
            unsafe { incoming.reply_inline.copy_from_nonoverlapping(words.as_ptr().cast(), size_of_val(&words)) };
            Ok(size_of_val(&words))
        }
        other => Err(format!("there is no built-in handler {other}")),
    }
}

/// The element kind of that number, of which rows must be whole elements.
fn element_kind(number: u64, row: u32) -> Result<ElementKind, String> {
    let kind = u8::try_from(number).ok().and_then(ElementKind::from_number);
    let kind = kind.ok_or_else(|| format!("there is no element kind {number}"))?;
    if (row as usize).is_multiple_of(kind.size()) {
        Ok(kind)
    } else {
        Err(format!("rows of {row} bytes are no whole elements of {kind:?}"))
    }
}

/// The records of a list, all of which name places inside their region.
struct Records<'a> {
    records: &'a [u8],
    /// Bytes of one.
    record: usize,
    /// This rank's.
    slot: usize,
    /// Where the region's part lies in this rank's slot.
    base: u64,
}

impl<'a> Records<'a> {
    /// Checks a list whose records hold `held` bytes each besides the place.
    fn new(
        node: &Node,
        incoming: &Incoming<'a>,
        list: List,
        inline: &'a [u8],
        held: u32,
        align: u64,
    ) -> Result<Self, String> {
        let id = RegionId::from_bits(list.region);
        let part = node.mine().regions.part(id).ok_or_else(|| format!("region {id} does not exist there"))?;
        let records = if incoming.staged.is_empty() { inline } else { incoming.staged };
        let record = RECORD + held as usize;
        if Some(records.len()) != record.checked_mul(list.segments as usize) {
            return Err(format!("{} bytes of records came for {list:?}", records.len()));
        }
        let records = Records { records, record, slot: node.who().local_rank, base: part.offset };
        let outside = |at: u64| at.checked_add(list.row.into()).is_none_or(|end| end > part.len);
        // Slots are aligned to anything. Of registered memory, where the part begins is not.
        let misaligned = |at: u64| !part.offset.wrapping_add(at).is_multiple_of(align);
        let wrong = records.places().find(|at| outside(*at) || misaligned(*at));
        match wrong {
            None => Ok(records),
            Some(at) => Err(format!(
                "the segment of {} bytes at {at} leaves region {id}, which has {} bytes there, or is not aligned to \
                 {align} bytes",
                list.row, part.len
            )),
        }
    }

    /// Where each segment begins in the part.
    fn places(&self) -> impl Iterator<Item = u64> {
        self.records.chunks_exact(self.record).map(|record| bytemuck::pod_read_unaligned(&record[..RECORD]))
    }

    /// Where each segment begins in the slot, and what its record holds besides.
    fn iter(&self) -> impl Iterator<Item = (Remote, &'a [u8])> {
        let data = self.records.chunks_exact(self.record).map(|record| &record[RECORD..]);
        self.places().map(|at| Remote { slot: self.slot, offset: self.base.wrapping_add(at) }).zip(data)
    }
}

/// The fixed part of a message's arguments, and what follows it.
pub(crate) fn arguments<'a, A: Pod>(incoming: &Incoming<'a>) -> Result<(A, &'a [u8]), String> {
    let (fixed, rest) = incoming
        .inline
        .split_at_checked(size_of::<A>())
        .ok_or_else(|| format!("{} bytes of arguments are too few", incoming.inline.len()))?;
    Ok((bytemuck::pod_read_unaligned(fixed), rest))
}

/// The data of a message, behind its arguments or staged, which are to be so many bytes.
fn payload<'a>(incoming: &Incoming<'a>, inline: &'a [u8], bytes: Option<usize>) -> Result<&'a [u8], String> {
    let data = if incoming.staged.is_empty() { inline } else { incoming.staged };
    if Some(data.len()) == bytes {
        Ok(data)
    } else {
        Err(format!("{} bytes of data came for rows of {bytes:?} bytes", data.len()))
    }
}

/// How long a reply of so many bytes is, and where it goes, if it fits.
fn reply_of(incoming: &Incoming<'_>, bytes: Option<usize>) -> Result<(usize, *mut u8), String> {
    let room = incoming.reply_room;
    let fitting = bytes.filter(|bytes| *bytes <= room);
    let bytes = fitting.ok_or_else(|| format!("{bytes:?} bytes were asked for in one message, at most {room} fit"))?;
    Ok((bytes, if bytes <= REPLY_INLINE_MAX { incoming.reply_inline } else { incoming.reply_staged }))
}

/// Where rows lie in this rank's slot, once they are known to lie inside their region.
fn locate(node: &Node, rows: &Rows, align: u64) -> Result<Remote, String> {
    let id = RegionId::from_bits(rows.region);
    let slot = node.who().local_rank;
    let part = node.mine().regions.part(id).ok_or_else(|| format!("region {id} does not exist there"))?;
    let span = u64::from(rows.rows.saturating_sub(1))
        .checked_mul(rows.stride)
        .and_then(|span| span.checked_add(rows.row.into()))
        .and_then(|span| span.checked_add(rows.offset));
    if span.is_none_or(|end| end > part.len) {
        return Err(format!("{rows:?} leave region {id}, which has {} bytes there", part.len));
    }
    let offset = part.offset.wrapping_add(rows.offset);
    // Slots are aligned to anything. Of registered memory, where the part begins is not.
    if !offset.is_multiple_of(align) || (rows.rows > 1 && !rows.stride.is_multiple_of(align)) {
        return Err(format!("{rows:?} are not aligned to {align} bytes"));
    }
    Ok(Remote { slot, offset })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn planes_are_what_their_levels_say_or_refused() {
        let levels = [(2, 10), (3, 40), (4, 200), (5, 1_000)];
        let planes = Planes::new(RegionId::from_bits(7), 100, 6, levels.into_iter());
        assert_eq!(planes.bytes(), Some(6 * 2 * 3 * 4 * 5));
        assert_eq!(planes.last(8), Ok(100 + 2 * 40 + 3 * 200 + 4 * 1_000));
        assert_eq!(planes.patch(true), Patch::new(&[10, 40, 200, 1_000], &[6, 12, 36, 144], &[6, 2, 3, 4, 5]));
        assert_eq!(planes.patch(false), Patch::new(&[6, 12, 36, 144], &[10, 40, 200, 1_000], &[6, 2, 3, 4, 5]));
        // One row alone, and one level.
        let row = Planes::new(RegionId::from_bits(7), 100, 6, [].into_iter());
        assert_eq!((row.bytes(), row.last(8), row.patch(true)), (Some(6), Ok(100), Patch::row(6)));

        assert!(planes.last(16).unwrap_err().contains("aligned to 16"), "a level of 40 bytes");
        let with = |strides, counts| Planes { strides, counts, ..planes };
        assert!(with([u64::MAX, 8, 8], [3, 1, 1]).last(1).unwrap_err().contains("everything"));
        assert!(with([u64::MAX / 2 + 1, u64::MAX / 2 + 1, 0], [2, 2, 1]).last(1).is_err());
        assert!(with([u64::MAX - 7, 8, 8], [1, 1, 1]).last(8).is_ok(), "strides that are never taken");
        assert_eq!(with([8; 3], [u32::MAX; 3]).bytes(), None);
        assert_eq!(with([8; 3], [0, 2, 2]).bytes(), Some(0));
    }
}
