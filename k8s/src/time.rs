//! Kubernetes' timestamps (RFC 3339, whole seconds, UTC) to and from the core's [`Time`].

use jiff::Timestamp;
use nodefold_core::time::Time;

/// Why a text is no timestamp that the core can hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no RFC 3339 timestamp between 1970 and 2554 (write it like 2026-11-30T18:49:55Z)")]
pub struct TimeError {
    /// The text.
    pub text: String,
}

/// Reads an RFC 3339 timestamp, with a fraction of a second or without.
///
/// ```
/// use nodefold_k8s::time;
/// let t = time::parse("2026-11-30T18:49:55Z")?;
/// assert_eq!(time::parse("2026-11-30T19:49:55.000+01:00")?, t);
/// assert_eq!(time::format(t), "2026-11-30T18:49:55Z");
/// # Ok::<(), time::TimeError>(())
/// ```
pub fn parse(text: &str) -> Result<Time, TimeError> {
    let error = || TimeError { text: text.to_owned() };
    if !has_rfc3339_shape(text.as_bytes()) {
        return Err(error());
    }
    let stamp: Timestamp = text.parse().map_err(|_| error())?;
    u64::try_from(stamp.as_nanosecond()).map(Time).map_err(|_| error())
}

/// Writes a time as Kubernetes' `metav1.Time`: UTC, cut to whole seconds.
pub fn format(time: Time) -> String {
    on_calendar(time.whole_seconds())
}

/// Writes a time as Kubernetes' `metav1.MicroTime`: UTC, with six digits of a second.
pub fn format_micro(time: Time) -> String {
    let seconds = on_calendar(time.whole_seconds());
    let micros = time.0 % 1_000_000_000 / 1000;
    format!("{}.{micros:06}Z", seconds.trim_end_matches('Z'))
}

fn on_calendar(time: Time) -> String {
    // 2^64 nanoseconds end in 2554, well before jiff's last year: this can't fail.
    Timestamp::from_nanosecond(i128::from(time.0)).map(|t| t.to_string()).unwrap_or_default()
}

/// jiff reads more than RFC 3339 (week dates, zone names, blanks): only this shape is Kubernetes'.
fn has_rfc3339_shape(b: &[u8]) -> bool {
    let digits = |r: core::ops::Range<usize>| b.get(r).is_some_and(|s| s.iter().all(u8::is_ascii_digit));
    let at = |i: usize, c: u8| b.get(i) == Some(&c);
    let date = digits(0..4) && at(4, b'-') && digits(5..7) && at(7, b'-') && digits(8..10) && at(10, b'T');
    let time = digits(11..13) && at(13, b':') && digits(14..16) && at(16, b':') && digits(17..19);
    if !date || !time {
        return false;
    }
    let mut i = 19;
    if at(i, b'.') {
        let fraction = b[i + 1..].iter().take_while(|c| c.is_ascii_digit()).count();
        if fraction == 0 {
            return false;
        }
        i += 1 + fraction;
    }
    let zone = &b[i..];
    zone == b"Z"
        || (zone.len() == 6
            && matches!(zone[0], b'+' | b'-')
            && digits(i + 1..i + 3)
            && at(i + 3, b':')
            && digits(i + 4..i + 6))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rfc_3339_is_read() {
        for bad in [
            "",
            "now",
            "2026-11-30",
            "2026-11-30 18:49:55Z",
            "2026-11-30T18:49:55",
            "2026-11-30T18:49:55.Z",
            "2026-13-30T18:49:55Z",
            "1969-12-31T23:59:59Z",
            "2600-01-01T00:00:00Z",
            "2026-W48-1T00:00:00Z",
            "2026-11-30T18:49:55Z[UTC]",
        ] {
            assert!(parse(bad).is_err(), "{bad} was read");
        }
        assert_eq!(parse("1970-01-01T00:00:01.5Z"), Ok(Time(1_500_000_000)));
    }

    #[test]
    fn fractions_are_cut_or_written_to_six_digits() {
        let t = Time(1_500_000_999);
        assert_eq!(format(t), "1970-01-01T00:00:01Z");
        assert_eq!(format_micro(t), "1970-01-01T00:00:01.500000Z");
        assert_eq!(format(Time(u64::MAX)), "2554-07-21T23:34:33Z");
    }
}
