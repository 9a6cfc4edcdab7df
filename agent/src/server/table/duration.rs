//! How long ago, in kubectl's words: two units at most, and fewer the longer it is.

use super::moment;
use nodefold_core::time::Time;

/// `5m12s`; `<unknown>` for what is no time.
pub fn since(text: &str, now: Time) -> String {
    moment(text).map_or("<unknown>".to_owned(), |then| human(now.0.saturating_sub(then.0) / 1_000_000_000))
}

/// So many seconds.
pub fn human(seconds: u64) -> String {
    let pair = |big: u64, unit: &str, small: u64, small_unit: &str| {
        if small == 0 { format!("{big}{unit}") } else { format!("{big}{unit}{small}{small_unit}") }
    };
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match () {
        () if seconds < 120 => format!("{seconds}s"),
        () if minutes < 10 => pair(minutes, "m", seconds % 60, "s"),
        () if minutes < 180 => format!("{minutes}m"),
        () if hours < 8 => pair(hours, "h", minutes % 60, "m"),
        () if hours < 48 => format!("{hours}h"),
        () if hours < 192 => pair(days, "d", hours % 24, "h"),
        () if days < 730 => format!("{days}d"),
        () if days < 2920 => pair(days / 365, "y", days % 365, "d"),
        () => format!("{}y", days / 365),
    }
}
