//! Quantities: `quantity("1Gi").isGreaterThan(quantity("1G"))`.

use super::opaque;
use cel::common::types::{CelBool, CelDouble, CelInt, CelString, Type};
use cel::{DeclarationError, Env, ExecutionError};
use nodefold_k8s::quantity::{self, Quantity};
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
    cel::add_member_overload!(env, fn compare_to: (Amount, Amount) -> CelInt)
}

/// A quantity as a value of its own type.
#[derive(Clone, Debug, PartialEq)]
struct Amount(Quantity);

static AMOUNT: Type = Type::new_unspecified_type("kubernetes.Quantity");

opaque!(Amount, AMOUNT);

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
