//! Kubernetes quantities (`500m`, `64Mi`, `1e3`): exact to a thousandth of a millionth, rounded up beyond,
//! capped at 2^63-1, and written in the one canonical form that the API server writes.

use core::cmp::Ordering;
use core::fmt;
use serde_json::Value;

/// An amount, and the family of suffixes it was written with.
#[derive(Copy, Clone, Debug)]
pub struct Quantity {
    nanos: i128,
    form: Form,
}

/// The family of suffixes: a quantity is written with the one it was read with.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// `m`, `k`, `M`, ...: powers of 1000.
    DecimalSi,
    /// `Ki`, `Mi`, ...: powers of 1024.
    BinarySi,
    /// `e3`, `E6`, ...
    DecimalExponent,
}

/// Why a text is no quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no quantity: {problem}")]
pub struct QuantityError {
    /// The text, cut if it is long.
    pub text: String,
    /// What is wrong with it, and what to write instead.
    pub problem: &'static str,
}

const NANOS: i128 = 1_000_000_000;
/// Kubernetes caps amounts at 2^63-1 units.
const CAP: i128 = i64::MAX as i128 * NANOS;
/// Far more digits than the cap has: what is longer is capped without being read.
const MAX_DIGITS: usize = 30;

impl Quantity {
    /// Thousandths, as cpu is charged.
    pub fn from_milli(milli: u64) -> Quantity {
        Quantity { nanos: (i128::from(milli) * 1_000_000).min(CAP), form: Form::DecimalSi }
    }

    /// Whole pieces.
    pub fn from_units(units: u64) -> Quantity {
        Quantity { nanos: (i128::from(units) * NANOS).min(CAP), form: Form::DecimalSi }
    }

    /// Bytes, in whichever family of suffixes says it shorter: 67108864 is `64Mi`, 1000000000 is `1G`. The
    /// core keeps no suffix, and this is how people write bytes.
    pub fn from_bytes(bytes: u64) -> Quantity {
        let decimal = Quantity::from_units(bytes);
        let binary = Quantity { form: Form::BinarySi, ..decimal };
        if binary.to_string().len() <= decimal.to_string().len() { binary } else { decimal }
    }

    /// Reads a quantity from JSON: a string or, as Kubernetes allows, a bare number.
    pub fn from_json(value: &Value) -> Result<Quantity, QuantityError> {
        match value {
            Value::String(text) => parse(text),
            Value::Number(number) => parse(&number.to_string()),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
                Err(error(&value.to_string(), "a string like \"500m\" or \"64Mi\" is needed"))
            }
        }
    }

    /// Less than nothing.
    pub fn is_negative(self) -> bool {
        self.nanos < 0
    }

    /// More than nothing.
    pub fn is_positive(self) -> bool {
        self.nanos > 0
    }

    /// Thousandths, rounded up; nothing if negative.
    pub fn milli(self) -> u64 {
        ceil_to_u64(self.nanos, 1_000_000)
    }

    /// Whole units, rounded up; nothing if negative.
    pub fn units(self) -> u64 {
        ceil_to_u64(self.nanos, NANOS)
    }

    /// Both together, capped, in the form of the first that isn't zero (as Kubernetes adds).
    pub fn plus(self, other: Quantity) -> Quantity {
        let form = if self.nanos == 0 { other.form } else { self.form };
        Quantity { nanos: (self.nanos + other.nanos).clamp(-CAP, CAP), form }
    }

    /// This less the other, capped.
    pub fn minus(self, other: Quantity) -> Quantity {
        self.plus(Quantity { nanos: -other.nanos, form: other.form })
    }

    /// Rounded up to whole thousandths, as the API server stores amounts.
    pub fn rounded_to_milli(self) -> Quantity {
        const MILLI: i128 = 1_000_000;
        let floor = self.nanos / MILLI * MILLI;
        let away = if floor == self.nanos { floor } else { floor + MILLI * self.nanos.signum() };
        Quantity { nanos: away.clamp(-CAP, CAP), form: self.form }
    }
}

fn ceil_to_u64(nanos: i128, unit: i128) -> u64 {
    if nanos <= 0 { 0 } else { u64::try_from((nanos + unit - 1) / unit).unwrap_or(u64::MAX) }
}

impl PartialEq for Quantity {
    /// Equal amounts, however written: `1` equals `1000m`.
    fn eq(&self, other: &Quantity) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Quantity) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Quantity) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

/// Reads a quantity.
///
/// ```
/// use nodefold_k8s::quantity;
/// assert_eq!(quantity::parse("0.5")?.to_string(), "500m");
/// assert_eq!(quantity::parse("1024Ki")?.to_string(), "1Mi");
/// assert_eq!(quantity::parse("1.5Gi")?.units(), 1536 << 20);
/// assert!(quantity::parse("64MB").is_err());
/// # Ok::<(), quantity::QuantityError>(())
/// ```
pub fn parse(text: &str) -> Result<Quantity, QuantityError> {
    let trimmed = text.trim();
    let (negative, unsigned) = match trimmed.as_bytes().first() {
        Some(b'-') => (true, &trimmed[1..]),
        Some(b'+') => (false, &trimmed[1..]),
        _ => (false, trimmed),
    };
    let number_end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(number_end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.contains('.') {
        return Err(error(text, "it has two decimal points"));
    }
    if whole.is_empty() && fraction.is_empty() {
        return Err(error(text, "it must begin with a number"));
    }
    let Some((scale, form)) = read_suffix(suffix) else {
        return Err(error(
            text,
            "its suffix is none of n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or an exponent like e3",
        ));
    };
    let mut digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).map(|b| b - b'0').collect();
    let shift = match scale {
        Scale::Decimal(exponent) => exponent,
        Scale::Binary(power) => {
            for _ in 0..power {
                multiply(&mut digits, 1024);
            }
            0
        }
    };
    let fraction_digits = i64::try_from(fraction.len()).unwrap_or(i64::MAX);
    let nanos = shifted(&digits, shift.saturating_add(9).saturating_sub(fraction_digits));
    Ok(Quantity { nanos: if negative { -nanos } else { nanos }, form })
}

fn error(text: &str, problem: &'static str) -> QuantityError {
    QuantityError { text: text.chars().take(40).collect(), problem }
}

enum Scale {
    Decimal(i64),
    Binary(u32),
}

fn read_suffix(suffix: &str) -> Option<(Scale, Form)> {
    let decimal = |e| Some((Scale::Decimal(e), Form::DecimalSi));
    let binary = |p| Some((Scale::Binary(p), Form::BinarySi));
    match suffix {
        "n" => decimal(-9),
        "u" => decimal(-6),
        "m" => decimal(-3),
        "" => decimal(0),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        "Pi" => binary(5),
        "Ei" => binary(6),
        _ => {
            let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            Some((Scale::Decimal(i64::from(exponent)), Form::DecimalExponent))
        }
    }
}

/// Multiplies a number of decimal digits, most significant first.
fn multiply(digits: &mut Vec<u8>, by: u32) {
    let mut carry = 0;
    for digit in digits.iter_mut().rev() {
        let product = u32::from(*digit) * by + carry;
        *digit = (product % 10) as u8;
        carry = product / 10;
    }
    let mut high = Vec::new();
    while carry > 0 {
        high.push((carry % 10) as u8);
        carry /= 10;
    }
    high.reverse();
    digits.splice(0..0, high);
}

/// The digits with the decimal point moved right by `shift`, as an integer rounded up, capped.
fn shifted(digits: &[u8], shift: i64) -> i128 {
    let first = digits.iter().position(|&d| d != 0);
    let Some(first) = first else { return 0 };
    let digits = &digits[first..];
    let value_of = |digits: &[u8]| digits.iter().fold(0i128, |n, &d| n * 10 + i128::from(d));
    let length = i64::try_from(digits.len()).unwrap_or(i64::MAX);
    let whole = length.saturating_add(shift);
    if whole > MAX_DIGITS as i64 {
        return CAP;
    }
    if whole <= 0 {
        return 1; // not zero, so rounded up to the smallest amount
    }
    let kept = usize::try_from(whole.min(length)).unwrap_or(0);
    let zeros = u32::try_from(whole - whole.min(length)).unwrap_or(0);
    let round_up = digits[kept..].iter().any(|&d| d != 0);
    let value = value_of(&digits[..kept]) * 10i128.pow(zeros) + i128::from(round_up);
    value.min(CAP)
}

impl fmt::Display for Quantity {
    /// The canonical form: no fraction, and the largest suffix that needs none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
        const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
        let mut amount = self.nanos.unsigned_abs();
        if amount == 0 {
            return f.write_str("0");
        }
        if self.nanos < 0 {
            f.write_str("-")?;
        }
        // Kubernetes writes what is less than 1024 without a binary suffix, so that nothing is rounded.
        if self.form == Form::BinarySi && amount >= 1024 * NANOS.unsigned_abs() {
            let mut units = amount.div_ceil(NANOS.unsigned_abs());
            let mut power = 0;
            while units.is_multiple_of(1024) && power < BINARY.len() - 1 {
                units /= 1024;
                power += 1;
            }
            return write!(f, "{units}{}", BINARY[power]);
        }
        let mut thousands = 0;
        while amount.is_multiple_of(1000) && thousands < DECIMAL.len() - 1 {
            amount /= 1000;
            thousands += 1;
        }
        match self.form {
            Form::DecimalExponent if thousands != 3 => {
                write!(f, "{amount}e{}", (thousands as i32 - 3) * 3)
            }
            Form::DecimalSi | Form::BinarySi | Form::DecimalExponent => {
                write!(f, "{amount}{}", DECIMAL[thousands])
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn canonical_forms_are_those_of_kubernetes() {
        for (text, canonical) in [
            ("0.5", "500m"),
            ("1024Ki", "1Mi"),
            ("1000", "1k"),
            ("1500", "1500"),
            ("100m", "100m"),
            ("1000m", "1"),
            ("0.1m", "100u"),
            ("0.0000000001", "1n"),
            ("1e3", "1e3"),
            ("12E6", "12e6"),
            ("1000e0", "1e3"),
            ("1e-3", "1e-3"),
            ("5e0", "5"),
            ("1.5Gi", "1536Mi"),
            ("1000Ki", "1000Ki"),
            ("0.5Ki", "512"),
            ("0Mi", "0"),
            ("1E", "1E"),
            ("-1.5", "-1500m"),
            ("+2", "2"),
            (".5", "500m"),
            ("5.", "5"),
            ("007", "7"),
            ("9223372036854775808", "9223372036854775807"),
            ("100E", "9223372036854775807"),
            ("1e999999999", "9223372036854775807e0"),
            ("9007199254740988Ki", "9007199254740988Ki"),
        ] {
            let got = parse(text).unwrap().to_string();
            assert_eq!(got, canonical.trim_end_matches("e0"), "{text}");
        }
    }

    #[test]
    fn amounts_round_up() {
        assert_eq!(parse("1m").unwrap().units(), 1);
        assert_eq!(parse("1.0001").unwrap().milli(), 1001);
        assert_eq!(parse("0.1m").unwrap().milli(), 1);
        assert_eq!(parse("0.1m").unwrap().rounded_to_milli().to_string(), "1m");
        assert_eq!(parse("-5").unwrap().units(), 0);
        assert_eq!(parse("8Ei").unwrap().units(), i64::MAX as u64);
        assert_eq!(parse("8Ei").unwrap().milli(), u64::MAX, "saturates");
    }

    #[test]
    fn what_is_no_quantity_is_refused() {
        for bad in ["", " ", ".", "m", "-", "1..2", "1.2.3", "64MB", "1K", "0x10", "1e", "1e1.5", "1 Gi", "١"]
        {
            assert!(parse(bad).is_err(), "{bad:?} was read");
        }
    }

    #[test]
    fn bytes_are_written_as_people_do() {
        assert_eq!(Quantity::from_bytes(64 << 20).to_string(), "64Mi");
        assert_eq!(Quantity::from_bytes(1_000_000_000_000).to_string(), "1T");
        assert_eq!(Quantity::from_bytes(128_974_848).to_string(), "123Mi");
        assert_eq!(Quantity::from_bytes(100).to_string(), "100");
    }

    proptest! {
        #[test]
        fn hostile_text_never_panics(text in ".{0,60}") {
            let _ = parse(&text);
        }

        #[test]
        fn hostile_numbers_never_panic(text in "[-+]?[0-9]{0,40}\\.?[0-9]{0,40}[eE]?[-+]?[0-9]{0,12}[numkMGTPEKi]{0,2}") {
            if let Ok(q) = parse(&text) {
                let _ = (q.milli(), q.units(), q.rounded_to_milli(), q.plus(q), q.to_string());
            }
        }

        #[test]
        fn what_is_written_reads_back(
            mantissa in 0u64..1_000_000_000, fraction in 0u32..1000,
            suffix in prop::sample::select(vec!["", "m", "k", "M", "G", "Ki", "Mi", "Gi", "e3", "e-3"]),
        ) {
            let read = parse(&format!("{mantissa}.{fraction}{suffix}")).unwrap();
            let again = parse(&read.to_string()).unwrap();
            // A binary amount that needs no suffix reads back as a decimal one, as in Kubernetes; from then on it is stable.
            let stable = parse(&again.to_string()).unwrap();
            prop_assert_eq!(stable.to_string(), again.to_string());
            prop_assert!(again >= read, "{} became {}", read, again);
            prop_assert_eq!(again.units(), read.units());
        }

        #[test]
        fn amounts_of_the_core_survive_the_boundary(amount in 0..i64::MAX as u64) {
            prop_assert_eq!(parse(&Quantity::from_bytes(amount).to_string()).unwrap().units(), amount);
            prop_assert_eq!(parse(&Quantity::from_units(amount).to_string()).unwrap().units(), amount);
            let milli = amount / 1000;
            prop_assert_eq!(parse(&Quantity::from_milli(milli).to_string()).unwrap().milli(), milli);
        }
    }
}
