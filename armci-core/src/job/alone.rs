//! A job of one: what a program is that nobody launched.

use super::{Bootstrap, Identity, random_secret};
use crate::error::Result;

/// The only rank of its job; every exchange is with itself.
pub(super) struct Alone {
    identity: Identity,
    secret: u64,
}

impl Alone {
    pub(super) fn new() -> Result<Self> {
        Ok(Self { identity: Identity::on_one_node(0, 1), secret: random_secret()? })
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

    fn secret(&self) -> u64 {
        self.secret
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gathers_from_itself() {
        let mut alone = Alone::new().unwrap();
        assert_eq!(alone.identity().size, 1);
        assert_eq!(alone.all_gather(b"x").unwrap(), vec![b"x".to_vec()]);
        alone.goodbye().unwrap();
        assert_ne!(alone.secret(), Alone::new().unwrap().secret());
    }
}
