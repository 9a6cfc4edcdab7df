//! Durations as scenario files write them: `500ms`, `5s`, `2m`, `1h30m`.

use super::reader::Reader;
use nodefold_core::time::Nanos;
use nodefold_k8s::InputError;

/// Reads one.
pub fn read(field: &Reader<'_>) -> Result<Nanos, InputError> {
    let text = field.string()?;
    parse(&text).ok_or_else(|| {
        field.error(
            format!("{text:?} is no length of time"),
            "write a number with a unit: 500ms, 5s, 2m, 1h30m",
        )
    })
}

fn parse(text: &str) -> Option<Nanos> {
    let mut rest = text.trim();
    let mut total: u64 = 0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(digits);
        let unit_end = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, next) = tail.split_at(unit_end);
        let nanos_per_unit: u64 = match unit {
            "ns" => 1,
            "us" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        total = total.checked_add(scaled(number, nanos_per_unit)?)?;
        rest = next;
    }
    Some(Nanos(total))
}

/// A decimal number of units, in whole nanoseconds.
fn scaled(number: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let mut total = whole.parse::<u64>().ok()?.checked_mul(unit)?;
    let mut place = unit;
    for digit in fraction.bytes() {
        place /= 10;
        total = total.checked_add(u64::from(digit.checked_sub(b'0').filter(|d| *d < 10)?) * place)?;
    }
    Some(total)
}

/// As a scenario file writes it, without rounding: in the largest unit that divides it.
pub fn exact(time: Nanos) -> String {
    const UNITS: [(u64, &str); 6] = [
        (3_600_000_000_000, "h"),
        (60_000_000_000, "m"),
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
        (1_000, "us"),
        (1, "ns"),
    ];
    let fits = UNITS.into_iter().find(|(unit, _)| time.0 != 0 && time.0.is_multiple_of(*unit));
    let (unit, name) = fits.unwrap_or((1_000_000_000, "s"));
    format!("{}{name}", time.0 / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_have_units() {
        assert_eq!(parse("500ms"), Some(Nanos::millis(500)));
        assert_eq!(parse("1h30m"), Some(Nanos::secs(5400)));
        assert_eq!(parse("1.5s"), Some(Nanos::millis(1500)));
        for bad in ["", "5", "s", "5 minutes", "-1s", "1x", "1.s2", "99999999999h"] {
            assert_eq!(parse(bad), None, "{bad:?}");
        }
    }
}
