//! A job of one: what a program is that nobody launched.

use super::{Bootstrap, Identity};
use crate::error::Result;

/// The only rank of its job; every exchange is with itself.
pub(super) struct Alone {
    identity: Identity,
}

impl Alone {
    pub(super) fn new() -> Self {
        Self { identity: Identity::on_one_machine(0, 1, 1) }
    }
}

impl Bootstrap for Alone {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn all_gather(&mut self, mine: &[u8]) -> Result<Vec<Vec<u8>>> {
        Ok(vec![mine.to_vec()])
    }

    fn goodbye(&mut self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gathers_from_itself() {
        let mut alone = Alone::new();
        assert_eq!(alone.identity().size, 1);
        assert_eq!(alone.all_gather(b"x").unwrap(), vec![b"x".to_vec()]);
        alone.goodbye().unwrap();
    }
}
