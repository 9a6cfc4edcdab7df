//! Places in a journal as people name them: a record's number, a time after its beginning, or a time of day.

use crate::ending::Unusable;
use jiff::SignedDuration;
use nodefold_core::time::{Nanos, Time};
use nodefold_journal::Position;

/// Reads a place.
pub fn parse(text: &str, beginning: Time) -> Result<Position, Unusable> {
    if let Ok(record) = text.parse::<u64>() {
        return Ok(Position::Record(record));
    }
    if let Ok(at) = nodefold_k8s::time::parse(text) {
        return Ok(Position::Time(at));
    }
    let after = text.parse::<SignedDuration>().ok().and_then(|d| u64::try_from(d.as_nanos()).ok());
    match after {
        Some(nanos) => Ok(Position::Time(beginning.after(Nanos(nanos)))),
        None => Err(Unusable::new(
            format!("{text:?} is no place in a journal"),
            "write a record's number (57), a time after the first record (2.5s, 3m) or an RFC 3339 time",
        )),
    }
}

/// The last moment that is shown as this one: times are shown in whole milliseconds, and who types one off the screen
/// means all that is shown there.
pub fn to_the_end_of(position: Position) -> Position {
    match position {
        Position::Record(record) => Position::Record(record),
        Position::Time(at) => {
            Position::Time(Time((at.0 / 1_000_000).saturating_mul(1_000_000).saturating_add(999_999)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGINNING: Time = Time(1_767_225_600_000_000_000);

    #[test]
    fn places_are_numbers_durations_and_timestamps() {
        let at = |text: &str| parse(text, BEGINNING).map_err(|e| e.to_string());
        assert_eq!(at("57"), Ok(Position::Record(57)));
        assert_eq!(at("2.5s"), Ok(Position::Time(BEGINNING.after(Nanos::millis(2500)))));
        assert_eq!(at("1m30s"), Ok(Position::Time(BEGINNING.after(Nanos::secs(90)))));
        assert_eq!(at("2026-01-01T00:00:01Z"), Ok(Position::Time(BEGINNING.after(Nanos::secs(1)))));
    }

    #[test]
    fn what_is_no_place_is_refused_with_a_remedy() {
        for text in ["soon", "-3s", ""] {
            let error = parse(text, BEGINNING).expect_err(text).to_string();
            assert!(error.contains("write a record's number"), "{error}");
        }
    }

    #[test]
    fn a_shown_moment_is_meant_whole() {
        assert_eq!(to_the_end_of(Position::Time(Time(5_000_000))), Position::Time(Time(5_999_999)));
        assert_eq!(to_the_end_of(Position::Record(3)), Position::Record(3));
    }
}
