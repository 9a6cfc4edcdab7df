//! Functions that Kubernetes adds to CEL: quantities, and finding by regular expression.

use cel::common::types::{CelBool, CelDouble, CelInt, CelList, CelString, Type};
use cel::common::value::{StaticVal, Val};
use cel::{DeclarationError, Env, ExecutionError};
use nodefold_k8s::quantity::{self, Quantity};
use regex::Regex;
use std::any::Any;
use std::cmp::Ordering;

/// Declares all of them.
pub(super) fn extension(env: &mut Env) -> Result<(), DeclarationError> {
    cel::add_overload!(env, fn quantity_of: (CelString) -> Result<Amount>, name = "quantity")?;
    cel::add_overload!(env, fn is_quantity: (CelString) -> CelBool)?;
    cel::add_member_overload!(env, fn is_integer: (Amount) -> CelBool)?;
    cel::add_member_overload!(env, fn as_integer: (Amount) -> Result<CelInt>)?;
    cel::add_member_overload!(env, fn as_approximate_float: (Amount) -> CelDouble)?;
    cel::add_member_overload!(env, fn sign: (Amount) -> CelInt)?;
    cel::add_member_overload!(env, fn add: (Amount, Amount) -> Amount)?;
    cel::add_member_overload!(env, fn add_whole: (Amount, CelInt) -> Amount, name = "add")?;
    cel::add_member_overload!(env, fn sub: (Amount, Amount) -> Amount)?;
    cel::add_member_overload!(env, fn sub_whole: (Amount, CelInt) -> Amount, name = "sub")?;
    cel::add_member_overload!(env, fn is_greater_than: (Amount, Amount) -> CelBool)?;
    cel::add_member_overload!(env, fn is_less_than: (Amount, Amount) -> CelBool)?;
    cel::add_member_overload!(env, fn compare_to: (Amount, Amount) -> CelInt)?;
    cel::add_member_overload!(env, fn find: (CelString, CelString) -> Result<CelString>)?;
    cel::add_member_overload!(env, fn find_all: (CelString, CelString) -> Result<CelList>)?;
    cel::add_member_overload!(env, fn find_some: (CelString, CelString, CelInt) -> Result<CelList>, name = "findAll")
}

/// A quantity as a value of its own type.
#[derive(Clone, Debug)]
struct Amount(Quantity);

static AMOUNT: Type = Type::new_unspecified_type("kubernetes.Quantity");

impl Val for Amount {
    fn get_type(&self) -> &Type {
        &AMOUNT
    }

    fn cel_type() -> &'static Type {
        &AMOUNT
    }

    fn equals(&self, other: &dyn Val) -> bool {
        other.downcast_ref::<Amount>().is_some_and(|other| other.0 == self.0)
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v>
    where
        Self: 'v,
    {
        Box::new(self.clone())
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl StaticVal for Amount {}

fn quantity_of(text: &CelString<'_>) -> Result<Amount, ExecutionError> {
    let read = quantity::parse(text.inner());
    read.map(Amount).map_err(|wrong| ExecutionError::function_error("quantity", wrong))
}

fn is_quantity(text: &CelString<'_>) -> CelBool {
    CelBool::from(quantity::parse(text.inner()).is_ok())
}

/// The whole number that it is, if it is one.
fn whole(amount: &Amount) -> Option<i64> {
    let (magnitude, negative) = if amount.0.is_negative() {
        (Quantity::from_units(0).minus(amount.0), true)
    } else {
        (amount.0, false)
    };
    let units = magnitude.units();
    let exact = Quantity::from_units(units) == magnitude;
    let signed = i64::try_from(units).ok().filter(|_| exact)?;
    Some(if negative { -signed } else { signed })
}

fn is_integer(amount: &Amount) -> CelBool {
    CelBool::from(whole(amount).is_some())
}

fn as_integer(amount: &Amount) -> Result<CelInt, ExecutionError> {
    let whole = whole(amount).map(CelInt::from);
    whole.ok_or_else(|| ExecutionError::function_error("asInteger", "it is no whole number"))
}

fn as_approximate_float(amount: &Amount) -> CelDouble {
    let zero = Quantity::from_units(0);
    let milli = |amount: Quantity| amount.milli() as f64 / 1000.0;
    CelDouble::from(if amount.0.is_negative() { -milli(zero.minus(amount.0)) } else { milli(amount.0) })
}

fn sign(amount: &Amount) -> CelInt {
    CelInt::from(i64::from(amount.0.is_positive()) - i64::from(amount.0.is_negative()))
}

fn of_units(units: &CelInt) -> Quantity {
    let magnitude = Quantity::from_units(units.inner().unsigned_abs());
    if *units.inner() < 0 { Quantity::from_units(0).minus(magnitude) } else { magnitude }
}

fn add(a: &Amount, b: &Amount) -> Amount {
    Amount(a.0.plus(b.0))
}

fn add_whole(a: &Amount, b: &CelInt) -> Amount {
    Amount(a.0.plus(of_units(b)))
}

fn sub(a: &Amount, b: &Amount) -> Amount {
    Amount(a.0.minus(b.0))
}

fn sub_whole(a: &Amount, b: &CelInt) -> Amount {
    Amount(a.0.minus(of_units(b)))
}

fn is_greater_than(a: &Amount, b: &Amount) -> CelBool {
    CelBool::from(a.0 > b.0)
}

fn is_less_than(a: &Amount, b: &Amount) -> CelBool {
    CelBool::from(a.0 < b.0)
}

fn compare_to(a: &Amount, b: &Amount) -> CelInt {
    CelInt::from(match a.0.cmp(&b.0) {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    })
}

fn pattern(text: &CelString<'_>) -> Result<Regex, ExecutionError> {
    Regex::new(text.inner()).map_err(|wrong| ExecutionError::function_error("find", wrong))
}

/// The first match; empty if there is none.
fn find(text: &CelString<'_>, wanted: &CelString<'_>) -> Result<CelString<'static>, ExecutionError> {
    let found = pattern(wanted)?.find(text.inner()).map(|m| m.as_str().to_owned());
    Ok(CelString::from(found.unwrap_or_default()))
}

fn find_all(text: &CelString<'_>, wanted: &CelString<'_>) -> Result<CelList<'static>, ExecutionError> {
    matches(text, wanted, usize::MAX)
}

/// As many as asked for; all of them if that is negative.
fn find_some(
    text: &CelString<'_>,
    wanted: &CelString<'_>,
    most: &CelInt,
) -> Result<CelList<'static>, ExecutionError> {
    matches(text, wanted, usize::try_from(*most.inner()).unwrap_or(usize::MAX))
}

fn matches(
    text: &CelString<'_>,
    wanted: &CelString<'_>,
    most: usize,
) -> Result<CelList<'static>, ExecutionError> {
    let pattern = pattern(wanted)?;
    let found = pattern.find_iter(text.inner()).take(most);
    let found: Vec<Box<dyn Val>> =
        found.map(|m| Box::new(CelString::from(m.as_str().to_owned())) as Box<dyn Val>).collect();
    Ok(CelList::from(found))
}
