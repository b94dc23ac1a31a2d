//! Where this machine can be reached: the addresses of its network interfaces.
//!
//! # Safety
//! INTERFACE-LIST: a list that `getifaddrs` has handed out is read only before `freeifaddrs`, which is called once; each
//! entry's name is a C string, and its address, unless null, is as long as its family says.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ptr;

use crate::error::{Error, Result};

/// An address of an interface that is up.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Interface {
    name: String,
    address: IpAddr,
    loopback: bool,
}

/// The addresses under which other hosts may reach this one: of an interface or this one address, if that was asked
/// for, else all but the loopback's.
///
/// # Errors
/// If there is none, or no such interface.
pub(in super::super) fn to_be_called_at(asked: Option<&str>) -> Result<Vec<IpAddr>> {
    choose(&interfaces()?, asked)
}

fn choose(interfaces: &[Interface], asked: Option<&str>) -> Result<Vec<IpAddr>> {
    if let Some(address) = asked.and_then(|asked| asked.parse().ok()) {
        return Ok(vec![address]);
    }
    let wanted = |interface: &&Interface| match asked {
        Some(name) => interface.name == name,
        None => !interface.loopback,
    };
    let found: Vec<_> = interfaces.iter().filter(wanted).map(|interface| interface.address).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let show = |interface: &Interface| format!("{} ({})", interface.name, interface.address);
    let there = interfaces.iter().map(show).collect::<Vec<_>>().join(", ");
    Err(Error::Job(match asked {
        Some(asked) => format!("{asked:?} is neither an address nor an interface that is up; there are: {there}"),
        None => format!(
            "no interface but the loopback has an address, so that no other host can call back; there are: {there}; say \
             --address ADDRESS if there is one all the same"
        ),
    }))
}

/// All interfaces that are up, with their addresses. Those that are valid on one link only are left out: who calls them
/// must know the link.
fn interfaces() -> Result<Vec<Interface>> {
    let mut list = ptr::null_mut();
    // SAFETY: INTERFACE-LIST; the pointer is valid for writing.
    if unsafe { libc::getifaddrs(&raw mut list) } != 0 {
        return Err(Error::System { call: "getifaddrs", source: io::Error::last_os_error() });
    }
    let mut found = Vec::new();
    let mut next = list;
    // SAFETY: INTERFACE-LIST: an entry's pointer to the next is valid, or null at the end.
    while let Some(entry) = unsafe { next.as_ref() } {
        next = entry.ifa_next;
        let flag = |flag: i32| entry.ifa_flags & flag as u32 != 0;
        // SAFETY: INTERFACE-LIST.
        let address = unsafe { address_of(entry.ifa_addr) };
        if let Some(address) = address.filter(|_| flag(libc::IFF_UP)) {
            // SAFETY: INTERFACE-LIST.
            let name = unsafe { CStr::from_ptr(entry.ifa_name) }.to_string_lossy().into_owned();
            found.push(Interface { name, address, loopback: flag(libc::IFF_LOOPBACK) });
        }
    }
    // SAFETY: INTERFACE-LIST; nothing of the list is kept.
    unsafe { libc::freeifaddrs(list) };
    Ok(found)
}

/// The address, if it is of the Internet and valid beyond a link.
///
/// # Safety
/// INTERFACE-LIST: null, or as long as its family says.
unsafe fn address_of(address: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: the caller vouches for it.
    match i32::from(unsafe { address.as_ref() }?.sa_family) {
        libc::AF_INET => {
            // SAFETY: the family says that it is one of these; the copy needs no alignment.
            let four = unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
            Some(Ipv4Addr::from(u32::from_be(four.sin_addr.s_addr)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let six = unsafe { address.cast::<libc::sockaddr_in6>().read_unaligned() };
            let six = Ipv6Addr::from(six.sin6_addr.s6_addr);
            (!six.is_unicast_link_local()).then_some(six.into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_is_there_and_is_told_from_the_others() {
        let all = interfaces().unwrap();
        let lo = all.iter().find(|interface| interface.address == IpAddr::from([127, 0, 0, 1])).unwrap();
        assert!(lo.loopback && lo.name == "lo", "{all:?}");
        assert!(all.iter().filter(|interface| interface.loopback).all(|interface| interface.address.is_loopback()));
    }

    #[test]
    fn what_is_asked_for_is_found_or_named() {
        let interface = |name: &str, address: &str| Interface {
            name: name.into(),
            address: address.parse().unwrap(),
            loopback: name == "lo",
        };
        let all = [interface("lo", "127.0.0.1"), interface("ib0", "10.1.0.1"), interface("eth0", "fd00::1")];
        let chosen = |asked| choose(&all, asked).map(|found| found.iter().map(IpAddr::to_string).collect::<Vec<_>>());
        assert_eq!(chosen(None).unwrap(), ["10.1.0.1", "fd00::1"]);
        assert_eq!(chosen(Some("ib0")).unwrap(), ["10.1.0.1"]);
        assert_eq!(chosen(Some("lo")).unwrap(), ["127.0.0.1"]);
        assert_eq!(chosen(Some("192.0.2.7")).unwrap(), ["192.0.2.7"]);
        let error = chosen(Some("ib9")).unwrap_err().to_string();
        assert!(error.contains("\"ib9\"") && error.contains("ib0 (10.1.0.1)"), "{error}");
        assert!(choose(&all[..1], None).unwrap_err().to_string().contains("--address"));
    }
}
