//! Addresses and networks: `cidr("10.0.0.0/8").containsIP("10.1.2.3")`.
//!
//! As in Kubernetes, an IPv4 address in IPv6's clothes (`::ffff:1.2.3.4`), a zone and a leading zero are no address.

use super::opaque;
use cel::common::types::{CelBool, CelInt, CelString, Type};
use cel::{DeclarationError, Env, ExecutionError};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Declares them.
pub(super) fn extension(env: &mut Env) -> Result<(), DeclarationError> {
    cel::add_overload!(env, fn ip_of: (CelString) -> Result<Ip>, name = "ip")?;
    cel::add_overload!(env, fn is_ip: (CelString) -> CelBool, name = "isIP")?;
    cel::add_overload!(env, fn is_canonical: (CelString) -> Result<CelBool>, name = "ip.isCanonical")?;
    cel::add_overload!(env, fn ip_text: (Ip) -> CelString, name = "string")?;
    cel::add_member_overload!(env, fn family: (Ip) -> CelInt)?;
    cel::add_member_overload!(env, fn is_unspecified: (Ip) -> CelBool)?;
    cel::add_member_overload!(env, fn is_loopback: (Ip) -> CelBool)?;
    cel::add_member_overload!(env, fn is_link_local_multicast: (Ip) -> CelBool)?;
    cel::add_member_overload!(env, fn is_link_local_unicast: (Ip) -> CelBool)?;
    cel::add_member_overload!(env, fn is_global_unicast: (Ip) -> CelBool)?;
    cel::add_overload!(env, fn cidr_of: (CelString) -> Result<Cidr>, name = "cidr")?;
    cel::add_overload!(env, fn is_cidr: (CelString) -> CelBool, name = "isCIDR")?;
    cel::add_overload!(env, fn cidr_text: (Cidr) -> CelString, name = "string")?;
    cel::add_member_overload!(env, fn contains_ip: (Cidr, Ip) -> CelBool, name = "containsIP")?;
    cel::add_member_overload!(env, fn contains_ip_text: (Cidr, CelString) -> Result<CelBool>, name = "containsIP")?;
    cel::add_member_overload!(env, fn contains_cidr: (Cidr, Cidr) -> CelBool, name = "containsCIDR")?;
    cel::add_member_overload!(env, fn contains_cidr_text: (Cidr, CelString) -> Result<CelBool>, name = "containsCIDR")?;
    cel::add_member_overload!(env, fn address: (Cidr) -> Ip, name = "ip")?;
    cel::add_member_overload!(env, fn masked: (Cidr) -> Cidr)?;
    cel::add_member_overload!(env, fn prefix_length: (Cidr) -> CelInt)
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Ip(IpAddr);

static IP: Type = Type::new_unspecified_type("net.IP");

opaque!(Ip, IP);

/// An address of the network and how many bits name it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Cidr {
    address: IpAddr,
    bits: u32,
}

static CIDR: Type = Type::new_unspecified_type("net.CIDR");

opaque!(Cidr, CIDR);

fn wrong(function: &str, text: &str, what: &str) -> ExecutionError {
    ExecutionError::function_error(
        function,
        format!("{what} {text:?} parse error during conversion from string"),
    )
}

fn read_ip(text: &str) -> Result<Ip, ExecutionError> {
    match text.parse::<IpAddr>() {
        Ok(IpAddr::V6(six)) if six.to_ipv4_mapped().is_some() => {
            let what = format!("IPv4-mapped IPv6 address {text:?} is not allowed");
            Err(ExecutionError::function_error("ip", what))
        }
        Ok(address) => Ok(Ip(address)),
        Err(_) => Err(wrong("ip", text, "IP Address")),
    }
}

fn width(address: IpAddr) -> u32 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn read_cidr(text: &str) -> Result<Cidr, ExecutionError> {
    let bad = || wrong("cidr", text, "network address");
    let (address, bits) = text.split_once('/').ok_or_else(bad)?;
    let Ip(address) = read_ip(address).map_err(|_| bad())?;
    let plain = !bits.is_empty()
        && bits.bytes().all(|b| b.is_ascii_digit())
        && (bits == "0" || !bits.starts_with('0'));
    let bits: u32 = bits.parse().ok().filter(|_| plain).ok_or_else(bad)?;
    if bits > width(address) { Err(bad()) } else { Ok(Cidr { address, bits }) }
}

/// The address without what the bits don't name.
fn network(address: IpAddr, bits: u32) -> IpAddr {
    match address {
        IpAddr::V4(four) => {
            let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from_bits(four.to_bits() & mask))
        }
        IpAddr::V6(six) => {
            let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from_bits(six.to_bits() & mask))
        }
    }
}

impl Cidr {
    fn has(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.address.is_ipv4()
            && network(address, self.bits) == network(self.address, self.bits)
    }

    fn holds(&self, other: &Cidr) -> bool {
        self.bits <= other.bits && self.has(other.address)
    }
}

fn ip_of(text: &CelString<'_>) -> Result<Ip, ExecutionError> {
    read_ip(text.inner())
}

fn is_ip(text: &CelString<'_>) -> CelBool {
    CelBool::from(read_ip(text.inner()).is_ok())
}

fn is_canonical(text: &CelString<'_>) -> Result<CelBool, ExecutionError> {
    read_ip(text.inner()).map(|Ip(address)| CelBool::from(address.to_string() == text.inner()))
}

fn ip_text(ip: &Ip) -> CelString<'static> {
    CelString::from(ip.0.to_string())
}

fn family(ip: &Ip) -> CelInt {
    CelInt::from(if ip.0.is_ipv4() { 4 } else { 6 })
}

fn is_unspecified(ip: &Ip) -> CelBool {
    CelBool::from(ip.0.is_unspecified())
}

fn is_loopback(ip: &Ip) -> CelBool {
    CelBool::from(ip.0.is_loopback())
}

fn link_local_multicast(ip: &Ip) -> bool {
    match ip.0 {
        IpAddr::V4(four) => four.octets()[..3] == [224, 0, 0],
        IpAddr::V6(six) => six.segments()[0] & 0xff0f == 0xff02,
    }
}

fn link_local_unicast(ip: &Ip) -> bool {
    match ip.0 {
        IpAddr::V4(four) => four.is_link_local(),
        IpAddr::V6(six) => six.is_unicast_link_local(),
    }
}

fn is_link_local_multicast(ip: &Ip) -> CelBool {
    CelBool::from(link_local_multicast(ip))
}

fn is_link_local_unicast(ip: &Ip) -> CelBool {
    CelBool::from(link_local_unicast(ip))
}

/// As Go has it: private addresses are among them.
fn is_global_unicast(ip: &Ip) -> CelBool {
    let broadcast = ip.0 == IpAddr::V4(Ipv4Addr::BROADCAST);
    let special =
        ip.0.is_unspecified() || ip.0.is_loopback() || ip.0.is_multicast() || link_local_unicast(ip);
    CelBool::from(!broadcast && !special)
}

fn cidr_of(text: &CelString<'_>) -> Result<Cidr, ExecutionError> {
    read_cidr(text.inner())
}

fn is_cidr(text: &CelString<'_>) -> CelBool {
    CelBool::from(read_cidr(text.inner()).is_ok())
}

fn cidr_text(cidr: &Cidr) -> CelString<'static> {
    CelString::from(format!("{}/{}", cidr.address, cidr.bits))
}

fn contains_ip(cidr: &Cidr, ip: &Ip) -> CelBool {
    CelBool::from(cidr.has(ip.0))
}

fn contains_ip_text(cidr: &Cidr, text: &CelString<'_>) -> Result<CelBool, ExecutionError> {
    read_ip(text.inner()).map(|ip| contains_ip(cidr, &ip))
}

fn contains_cidr(cidr: &Cidr, other: &Cidr) -> CelBool {
    CelBool::from(cidr.holds(other))
}

fn contains_cidr_text(cidr: &Cidr, text: &CelString<'_>) -> Result<CelBool, ExecutionError> {
    read_cidr(text.inner()).map(|other| contains_cidr(cidr, &other))
}

fn address(cidr: &Cidr) -> Ip {
    Ip(cidr.address)
}

fn masked(cidr: &Cidr) -> Cidr {
    Cidr { address: network(cidr.address, cidr.bits), bits: cidr.bits }
}

fn prefix_length(cidr: &Cidr) -> CelInt {
    CelInt::from(i64::from(cidr.bits))
}
