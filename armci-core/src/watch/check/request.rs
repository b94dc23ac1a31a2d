//! What ranks ask each other for the checker, and how it travels: as words of eight bytes, and text.

use std::ops::Range;

use super::history::{Clock, Verb};

/// Longest file name that travels; of a longer one, the end.
const FILE_MAX: usize = 200;

/// A place in the program, and what is done there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Site {
    pub(super) file: String,
    pub(super) line: u64,
    pub(super) verb: Verb,
}

impl Site {
    pub(super) fn new(verb: Verb, file: &str, line: u32) -> Self {
        let from = (file.len().saturating_sub(FILE_MAX)..file.len()).find(|at| file.is_char_boundary(*at));
        Site { file: file[from.unwrap_or(0)..].into(), line: line.into(), verb }
    }
}

/// Something by which ranks hear of each other. It lies with one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Meeting {
    /// A word that is read and written as one: (region, offset).
    Word(u64, u64),
    /// One meeting of a gathering: (which gathering, how many meetings it had before, how many take part).
    Collective(u64, u64, u64),
    /// The messages of a rank with a tag.
    Letters(u64, i64),
    /// The handlers of a rank.
    Handlers,
}

/// What a rank asks of another one, or of itself.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Request {
    /// It touches these bytes of that rank's memory. Answered with the conflicts.
    Touch { site: Site, at: u64, meetings: u64, heard: Clock, region: u64, bytes: Vec<Range<u64>> },
    /// It does so by atomics, by which it hears what others have told there, if `hears`, and tells what it has heard, if
    /// `tells`.
    Word { site: Site, at: u64, meetings: u64, heard: Clock, region: u64, bytes: Range<u64>, hears: bool, tells: bool },
    /// It tells what it has heard to those who come.
    Tell { meeting: Meeting, meetings: u64, heard: Clock },
    /// It hears what others have told. Answered with a clock.
    Hear { meeting: Meeting },
    /// It has completed what it wrote there.
    Fence { at: u64, meetings: u64 },
    /// It has found a conflict; asked of the first rank. Answered with whether nobody else had.
    Found { first: Site, second: Site },
    /// Its part of the summary; told to the first rank.
    Total { accesses: u64, not_kept: u64 },
}

/// Writes a request or an answer.
#[derive(Debug, Default)]
pub(super) struct Writer(pub(super) Vec<u8>);

impl Writer {
    pub(super) fn word(&mut self, word: u64) -> &mut Self {
        self.0.extend_from_slice(&word.to_ne_bytes());
        self
    }

    pub(super) fn words(&mut self, words: &[u64]) -> &mut Self {
        self.word(words.len() as u64);
        for word in words {
            self.word(*word);
        }
        self
    }

    fn site(&mut self, site: &Site) -> &mut Self {
        self.word(site.verb as u64).word(site.line).word(site.file.len() as u64);
        self.0.extend_from_slice(site.file.as_bytes());
        self
    }

    fn meeting(&mut self, meeting: Meeting) -> &mut Self {
        let [kind, a, b, c] = match meeting {
            Meeting::Word(region, offset) => [0, region, offset, 0],
            Meeting::Collective(which, number, members) => [1, which, number, members],
            Meeting::Letters(source, tag) => [2, source, tag as u64, 0],
            Meeting::Handlers => [3, 0, 0, 0],
        };
        self.word(kind).word(a).word(b).word(c)
    }

    /// A conflict as an answer tells it.
    pub(super) fn conflict(&mut self, rank: usize, site: &Site, bytes: &Range<u64>, unfenced: bool) {
        self.word(rank as u64).site(site).word(bytes.start).word(bytes.end).word(unfenced.into());
    }
}

/// Reads what a [`Writer`] wrote.
#[derive(Debug)]
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

type Read<T> = Result<T, String>;

impl Reader<'_> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn word(&mut self) -> Read<u64> {
        let (word, rest) = self.0.split_first_chunk().ok_or("a word is missing")?;
        self.0 = rest;
        Ok(u64::from_ne_bytes(*word))
    }

    fn flag(&mut self) -> Read<bool> {
        Ok(self.word()? != 0)
    }

    pub(super) fn words(&mut self) -> Read<Vec<u64>> {
        let count = self.word()?;
        (0..count).map(|_| self.word()).collect()
    }

    fn clock(&mut self) -> Read<Clock> {
        self.words().map(Clock)
    }

    fn range(&mut self) -> Read<Range<u64>> {
        Ok(self.word()?..self.word()?)
    }

    fn site(&mut self) -> Read<Site> {
        let verb = self.word()?;
        let verb = *Verb::ALL.get(verb as usize).ok_or_else(|| format!("there is no verb {verb}"))?;
        let (line, len) = (self.word()?, self.word()? as usize);
        let (file, rest) = self.0.split_at_checked(len).ok_or("a file name is cut off")?;
        self.0 = rest;
        Ok(Site { file: String::from_utf8_lossy(file).into_owned(), line, verb })
    }

    fn meeting(&mut self) -> Read<Meeting> {
        let (kind, a, b, c) = (self.word()?, self.word()?, self.word()?, self.word()?);
        match kind {
            0 => Ok(Meeting::Word(a, b)),
            1 => Ok(Meeting::Collective(a, b, c)),
            2 => Ok(Meeting::Letters(a, b as i64)),
            3 => Ok(Meeting::Handlers),
            _ => Err(format!("there is no meeting of kind {kind}")),
        }
    }

    /// A conflict of an answer: the other rank, its site, the bytes, whether a fence is all that is missing.
    pub(super) fn conflict(&mut self) -> Read<(u64, Site, Range<u64>, bool)> {
        Ok((self.word()?, self.site()?, self.range()?, self.flag()?))
    }
}

impl Request {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        match self {
            Request::Touch { site, at, meetings, heard, region, bytes } => {
                writer.word(0).site(site).word(*at).word(*meetings).words(&heard.0).word(*region);
                for bytes in bytes {
                    writer.word(bytes.start).word(bytes.end);
                }
            }
            Request::Word { site, at, meetings, heard, region, bytes, hears, tells } => {
                writer.word(1).site(site).word(*at).word(*meetings).words(&heard.0).word(*region);
                writer.word(bytes.start).word(bytes.end).word(u64::from(*hears)).word(u64::from(*tells));
            }
            Request::Tell { meeting, meetings, heard } => {
                writer.word(2).meeting(*meeting).word(*meetings).words(&heard.0);
            }
            Request::Hear { meeting } => {
                writer.word(3).meeting(*meeting);
            }
            Request::Fence { at, meetings } => {
                writer.word(4).word(*at).word(*meetings);
            }
            Request::Found { first, second } => {
                writer.word(5).site(first).site(second);
            }
            Request::Total { accesses, not_kept } => {
                writer.word(6).word(*accesses).word(*not_kept);
            }
        }
        writer.0
    }

    pub(super) fn decode(bytes: &[u8]) -> Read<Self> {
        let mut reader = Reader(bytes);
        Ok(match reader.word()? {
            0 => {
                let (site, at, meetings) = (reader.site()?, reader.word()?, reader.word()?);
                let (heard, region) = (reader.clock()?, reader.word()?);
                let mut bytes = Vec::new();
                while !reader.is_empty() {
                    bytes.push(reader.range()?);
                }
                Request::Touch { site, at, meetings, heard, region, bytes }
            }
            1 => {
                let (site, at, meetings) = (reader.site()?, reader.word()?, reader.word()?);
                let (heard, region, bytes) = (reader.clock()?, reader.word()?, reader.range()?);
                let (hears, tells) = (reader.flag()?, reader.flag()?);
                Request::Word { site, at, meetings, heard, region, bytes, hears, tells }
            }
            2 => Request::Tell { meeting: reader.meeting()?, meetings: reader.word()?, heard: reader.clock()? },
            3 => Request::Hear { meeting: reader.meeting()? },
            4 => Request::Fence { at: reader.word()?, meetings: reader.word()? },
            5 => Request::Found { first: reader.site()?, second: reader.site()? },
            6 => Request::Total { accesses: reader.word()?, not_kept: reader.word()? },
            other => return Err(format!("the checker knows no request {other}")),
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn requests_arrive_as_they_were_sent() {
        let site = |line| Site::new(Verb::Rmw, "src/main.rs", line);
        let (heard, at, meetings, region) = (Clock(vec![3, 0, 9]), 4, 2, 77);
        let word = Meeting::Word(1, 2);
        for request in [
            Request::Touch { site: site(1), at, meetings, heard: heard.clone(), region, bytes: vec![1..2, 5..9] },
            Request::Word {
                site: site(1),
                at,
                meetings,
                heard: heard.clone(),
                region,
                bytes: 8..16,
                hears: true,
                tells: false,
            },
            Request::Tell { meeting: Meeting::Letters(3, -1), meetings, heard },
            Request::Hear { meeting: word },
            Request::Hear { meeting: Meeting::Collective(5, 6, 7) },
            Request::Hear { meeting: Meeting::Handlers },
            Request::Fence { at, meetings },
            Request::Found { first: site(1), second: site(2) },
            Request::Total { accesses: 1, not_kept: 2 },
        ] {
            let bytes = request.encode();
            assert_eq!(Request::decode(&bytes), Ok(request));
            assert!(Request::decode(&bytes[..bytes.len() - 1]).is_err());
        }
        assert!(Request::decode(&[]).is_err());
    }

    #[test]
    fn of_a_long_file_name_the_end_is_kept() {
        let site = Site::new(Verb::Put, &format!("{}/main.rs", "é".repeat(300)), 1);
        assert!(site.file.len() <= FILE_MAX && site.file.ends_with("é/main.rs"));
    }
}
