//! Amounts of cpu, memory and the like, and their sums. All integers: cpu in thousandths of a core, the rest in
//! bytes or pieces. Sums saturate, because a manifest may ask for anything.

use crate::ids::Name;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
#[cfg_attr(feature = "rkyv", rkyv(derive(PartialEq, Eq, PartialOrd, Ord)))]
pub enum ResourceName {
    /// `cpu`, in millicores.
    Cpu,
    /// `memory`, in bytes.
    Memory,
    /// `ephemeral-storage`, in bytes.
    EphemeralStorage,
    /// `pods`, in pieces.
    Pods,
    /// `hugepages-*` in bytes, extended resources in pieces.
    Other(Name),
}

impl ResourceName {
    /// As Kubernetes spells it.
    pub fn as_str(&self) -> &str {
        match self {
            ResourceName::Cpu => "cpu",
            ResourceName::Memory => "memory",
            ResourceName::EphemeralStorage => "ephemeral-storage",
            ResourceName::Pods => "pods",
            ResourceName::Other(name) => name,
        }
    }
    /// The resource of that name.
    pub fn parse(text: &str) -> ResourceName {
        match text {
            "cpu" => ResourceName::Cpu,
            "memory" => ResourceName::Memory,
            "ephemeral-storage" => ResourceName::EphemeralStorage,
            "pods" => ResourceName::Pods,
            other => ResourceName::Other(other.into()),
        }
    }
}

impl fmt::Display for ResourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Amounts by resource, sorted by name, each at most once. Absent and zero differ: only the QoS class cares, and it
/// is asked at the boundary. Shared and copied on write: a pod's spec, its instances and its status hold the same list.
#[derive(Default, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(from = "Vec<(ResourceName, u64)>", into = "Vec<(ResourceName, u64)>"))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct ResourceList(
    /// `None` when empty, never an empty slice.
    Option<Arc<[(ResourceName, u64)]>>,
);

impl fmt::Debug for ResourceList {
    /// As the list that it is, however it is kept.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ResourceList").field(&self.entries()).finish()
    }
}

impl ResourceList {
    /// Collects pairs; a name given twice keeps its last amount.
    pub fn from_pairs(pairs: impl IntoIterator<Item = (ResourceName, u64)>) -> ResourceList {
        let mut list: Vec<(ResourceName, u64)> = pairs.into_iter().collect();
        list.sort_by(|(a, _), (b, _)| a.cmp(b));
        list.dedup_by(|later, kept| {
            let same = later.0 == kept.0;
            if same {
                kept.1 = later.1;
            }
            same
        });
        ResourceList((!list.is_empty()).then(|| list.into()))
    }
    fn entries(&self) -> &[(ResourceName, u64)] {
        self.0.as_deref().unwrap_or_default()
    }
    /// The amount, or zero if absent.
    pub fn get(&self, name: &ResourceName) -> u64 {
        self.given(name).unwrap_or(0)
    }
    /// The amount, if one was given.
    pub fn given(&self, name: &ResourceName) -> Option<u64> {
        self.entries().iter().find(|(n, _)| n == name).map(|(_, amount)| *amount)
    }
    /// Sets an amount.
    pub fn set(&mut self, name: ResourceName, amount: u64) {
        match self.entries().binary_search_by(|(n, _)| n.cmp(&name)) {
            Ok(i) => self.put(i, amount),
            Err(i) => {
                let mut longer = self.entries().to_vec();
                longer.insert(i, (name, amount));
                self.0 = Some(longer.into());
            }
        }
    }
    /// All amounts, by name.
    pub fn iter(&self) -> impl Iterator<Item = &(ResourceName, u64)> {
        self.entries().iter()
    }
    /// Nothing was given.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }
    /// Adds every amount of `other`.
    pub fn add(&mut self, other: &ResourceList) {
        if self.is_empty() {
            *self = other.clone();
        } else {
            self.combine(other, u64::saturating_add);
        }
    }
    /// Takes every amount of `other` away.
    pub fn subtract(&mut self, other: &ResourceList) {
        self.combine(other, u64::saturating_sub);
    }
    /// Raises each amount to that of `other` where that is larger.
    pub fn raise_to(&mut self, other: &ResourceList) {
        self.combine(other, u64::max);
    }
    fn combine(&mut self, other: &ResourceList, f: fn(u64, u64) -> u64) {
        for (name, amount) in other.iter() {
            match self.entries().iter().position(|(n, _)| n == name) {
                Some(i) => self.put(i, f(self.entries()[i].1, *amount)),
                None => self.set(name.clone(), f(0, *amount)),
            }
        }
    }
    /// Sets the amount in that place. A list that others hold is copied only if that changes it.
    fn put(&mut self, i: usize, amount: u64) {
        if let Some(list) = &mut self.0
            && list[i].1 != amount
        {
            Arc::make_mut(list)[i].1 = amount;
        }
    }
}

impl From<Vec<(ResourceName, u64)>> for ResourceList {
    fn from(pairs: Vec<(ResourceName, u64)>) -> ResourceList {
        ResourceList::from_pairs(pairs)
    }
}

impl From<ResourceList> for Vec<(ResourceName, u64)> {
    fn from(list: ResourceList) -> Vec<(ResourceName, u64)> {
        list.entries().to_vec()
    }
}

// The bytes of a list, whether it is empty or not.
impl bincode::Encode for ResourceList {
    fn encode<E: bincode::enc::Encoder>(&self, encoder: &mut E) -> Result<(), bincode::error::EncodeError> {
        self.entries().encode(encoder)
    }
}

impl<C> bincode::Decode<C> for ResourceList {
    fn decode<D: bincode::de::Decoder<Context = C>>(
        decoder: &mut D,
    ) -> Result<ResourceList, bincode::error::DecodeError> {
        Vec::decode(decoder).map(ResourceList::from_pairs)
    }
}

bincode::impl_borrow_decode!(ResourceList);

/// A container's or a pod's resources.
#[derive(Default, Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct Resources {
    /// What the node sets aside.
    pub requests: ResourceList,
    /// What it may use at most.
    pub limits: ResourceList,
}

/// The class by which a pod is evicted and its resizes are ordered.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
#[cfg_attr(feature = "rkyv", rkyv(derive(PartialEq, Eq, PartialOrd, Ord)))]
pub enum QosClass {
    /// Every container has limits equal to its requests.
    Guaranteed,
    /// Some requests or limits.
    Burstable,
    /// None at all.
    BestEffort,
}

impl QosClass {
    /// As Kubernetes spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            QosClass::Guaranteed => "Guaranteed",
            QosClass::Burstable => "Burstable",
            QosClass::BestEffort => "BestEffort",
        }
    }
}

/// Bytes as Kubernetes prints a binary quantity: `1Gi`, `1500`.
pub fn bytes(amount: u64) -> impl fmt::Display {
    struct Bytes(u64);
    impl fmt::Display for Bytes {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            let suffixes = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
            let mut amount = self.0;
            let mut suffix = 0;
            while amount != 0 && amount.is_multiple_of(1024) && suffix + 1 < suffixes.len() {
                amount /= 1024;
                suffix += 1;
            }
            write!(f, "{amount}{}", suffixes[suffix])
        }
    }
    Bytes(amount)
}
