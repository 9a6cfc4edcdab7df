//! As of when history is asked for.

use jiff::SignedDuration;
use nodefold_core::time::Time;
use nodefold_k8s::time;

/// As of when.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum When {
    /// As it is known now: all runs, and what is allocated.
    #[default]
    Now,
    /// What was under way at that moment, with what has become of it since.
    At(Time),
    /// All that was known at that moment, and nothing that came later.
    AsOf(Time),
    /// The same at a version of the history (`metadata.resourceVersion` of a list of it).
    Revision(u64),
}

impl When {
    /// Reads a field of a selector, if it is one of these.
    pub fn read(field: &str, value: &str, now: Time) -> Option<Result<When, String>> {
        let moment = || time::parse(value).map_err(|_| format!("{field}: {value:?} is no RFC 3339 time"));
        Some(match field {
            "at" => moment().map(When::At),
            "asOf" => moment().map(When::AsOf),
            "ago" => ago(value, now).map(When::At),
            "revision" => value
                .parse()
                .map(When::Revision)
                .map_err(|_| format!("revision: {value:?} is no resourceVersion of a list of history")),
            _ => return None,
        })
    }
}

/// `1h30m` before now.
pub fn ago(text: &str, now: Time) -> Result<Time, String> {
    let wrong = || format!("ago: {text:?} is no span of time as in 90s, 1h30m, 2d");
    let span = match text.strip_suffix('d').map(str::parse::<i64>) {
        Some(days) => SignedDuration::from_hours(days.map_err(|_| wrong())?.saturating_mul(24)),
        None => text.parse().map_err(|_| wrong())?,
    };
    let span = u64::try_from(span.as_nanos()).map_err(|_| wrong())?;
    Ok(Time(now.0.saturating_sub(span)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_and_spans() {
        let now = Time(1_767_225_600_000_000_000);
        let read = |field: &str, value: &str| When::read(field, value, now);
        assert_eq!(read("at", "2026-01-01T00:00:00Z"), Some(Ok(When::At(now))));
        assert_eq!(read("ago", "1h"), Some(Ok(When::At(Time(now.0 - 3_600_000_000_000)))));
        assert_eq!(read("ago", "2d"), Some(Ok(When::At(Time(now.0 - 172_800_000_000_000)))));
        assert_eq!(read("revision", "7"), Some(Ok(When::Revision(7))));
        assert_eq!(read("spec.pod", "web"), None);
        for (field, bad) in [("at", "yesterday"), ("ago", "-1h"), ("ago", "soon"), ("revision", "x")] {
            assert!(matches!(read(field, bad), Some(Err(_))), "{field}={bad}");
        }
    }
}
