//! Times as lines state them, and how a file's clock makes moments of them (node-logs §1.8).
//!
//! A klog stamp has no year and no zone, a journald prefix has no fraction. [`Stamp`] keeps what was written;
//! [`Clock`] holds what was learnt or assumed about a file's year and zone.

use crate::scan::{fixed, number};

/// Nanoseconds in a second.
pub const SECOND: i64 = 1_000_000_000;
const DAY_SECONDS: i64 = 86_400;

/// A time as written.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The year, where written.
    pub year: Option<i32>,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
    /// Nanoseconds since midnight.
    pub of_day: i64,
    /// Seconds east of Greenwich, where written.
    pub offset: Option<i32>,
}

/// A time as written, or none, in half the room.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Packed {
    of_day: i64,
    offset: i32,
    year: i16,
    month: u8,
    day: u8,
}

impl Packed {
    const NO_YEAR: i16 = i16::MIN;
    const NO_OFFSET: i32 = i32::MIN;
    /// No month: no time at all.
    const NONE: Packed = Packed { of_day: 0, offset: 0, year: 0, month: 0, day: 0 };

    /// Packs it.
    pub fn new(stamp: Option<Stamp>) -> Packed {
        stamp.map_or(Packed::NONE, |s| Packed {
            of_day: s.of_day,
            offset: s.offset.unwrap_or(Packed::NO_OFFSET),
            // Years that moments can be in have four digits.
            year: s.year.map_or(Packed::NO_YEAR, |y| i16::try_from(y).unwrap_or(i16::MAX)),
            month: s.month,
            day: s.day,
        })
    }

    /// The stamp in it.
    pub fn stamp(self) -> Option<Stamp> {
        (self.month != 0).then(|| Stamp {
            year: (self.year != Packed::NO_YEAR).then(|| i32::from(self.year)),
            month: self.month,
            day: self.day,
            of_day: self.of_day,
            offset: (self.offset != Packed::NO_OFFSET).then_some(self.offset),
        })
    }
}

/// A moment: nanoseconds since the epoch, UTC.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub i64);

impl Moment {
    /// Nanoseconds from an earlier moment to this one; negative if it is later.
    pub const fn since(self, earlier: Moment) -> i64 {
        self.0.saturating_sub(earlier.0)
    }
    /// This moment and some nanoseconds.
    pub const fn plus(self, nanos: i64) -> Moment {
        Moment(self.0.saturating_add(nanos))
    }
}

/// Days since the epoch of a date of the Gregorian calendar.
pub fn days_from_civil(year: i32, month: u8, day: u8) -> i64 {
    let y = i64::from(year) - i64::from(month <= 2);
    let era = y.div_euclid(400);
    let of_era = y.rem_euclid(400);
    let shifted = (i64::from(month) + 9) % 12;
    let of_year = (153 * shifted + 2) / 5 + i64::from(day) - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The date of a day since the epoch.
pub fn civil_from_days(days: i64) -> (i32, u8, u8) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let of_era = z.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (
        i32::try_from(year).unwrap_or(i32::MAX),
        u8::try_from(month).unwrap_or(1),
        u8::try_from(day).unwrap_or(1),
    )
}

impl Stamp {
    /// The moment it means in a given year and zone, where it doesn't say itself.
    pub fn moment(&self, year: i32, offset: i32) -> Moment {
        let days = days_from_civil(self.year.unwrap_or(year), self.month, self.day);
        let seconds = days * DAY_SECONDS - i64::from(self.offset.unwrap_or(offset));
        Moment(seconds.saturating_mul(SECOND).saturating_add(self.of_day))
    }

    /// A moment as this zone writes it.
    pub fn at(moment: Moment, offset: i32) -> Stamp {
        let local = moment.0.saturating_add(i64::from(offset) * SECOND);
        let seconds = local.div_euclid(SECOND);
        let (year, month, day) = civil_from_days(seconds.div_euclid(DAY_SECONDS));
        let of_day = seconds.rem_euclid(DAY_SECONDS) * SECOND + local.rem_euclid(SECOND);
        Stamp { year: Some(year), month, day, of_day, offset: Some(offset) }
    }

    /// A date and a time of day.
    fn checked(year: Option<i32>, month: u32, day: u32, of_day: i64, offset: Option<i32>) -> Option<Stamp> {
        let ok = (1..=12).contains(&month) && (1..=31).contains(&day);
        let year_ok = year.is_none_or(|y| (1970..=2250).contains(&y));
        (ok && year_ok).then_some(Stamp {
            year,
            month: u8::try_from(month).ok()?,
            day: u8::try_from(day).ok()?,
            of_day,
            offset,
        })
    }

    /// `mmdd hh:mm:ss.uuuuuu`, as klog writes it: the stamp and its length.
    pub fn klog(text: &[u8]) -> Option<(Stamp, usize)> {
        // Always six digits of a second (node-logs §1.1): fewer, or more, is another logger's line.
        const WIDTH: usize = 20;
        let t: &[u8; WIDTH] = text.first_chunk()?;
        let separated = t[4] == b' ' && t[7] == b':' && t[10] == b':' && matches!(t[13], b'.' | b',');
        if !separated || text.get(WIDTH).is_some_and(u8::is_ascii_digit) {
            return None;
        }
        // Whether all are digits is asked once.
        let mut odd = 0;
        let mut two = |at: usize| {
            let (tens, ones) = (t[at].wrapping_sub(b'0'), t[at + 1].wrapping_sub(b'0'));
            odd |= u8::from(tens > 9) | u8::from(ones > 9);
            u32::from(tens) * 10 + u32::from(ones)
        };
        let (month, day) = (two(0), two(2));
        let (hour, minute, second) = (two(5), two(8), two(11));
        let micros = (two(14) * 100 + two(16)) * 100 + two(18);
        if odd != 0 || hour > 23 || minute > 59 || second > 60 {
            return None;
        }
        let of_day = i64::from(hour * 3600 + minute * 60 + second) * SECOND + i64::from(micros) * 1000;
        Some((Stamp::checked(None, month, day, of_day, None)?, WIDTH))
    }

    /// RFC 3339 and its relatives: `T` or a blank between, `Z`, `+08:00`, `+0000 UTC` or nothing behind.
    pub fn rfc3339(text: &[u8]) -> Option<(Stamp, usize)> {
        let year = fixed::<4>(text)?;
        if text.get(4) != Some(&b'-') || text.get(7) != Some(&b'-') {
            return None;
        }
        let month = fixed::<2>(text.get(5..)?)?;
        let day = fixed::<2>(text.get(8..)?)?;
        if !matches!(text.get(10), Some(b'T' | b' ')) {
            return None;
        }
        let (of_day, len) = time_of_day(text.get(11..)?)?;
        let mut end = 11 + len;
        let mut offset = None;
        let rest = &text[end..];
        if let Some(b'Z') = rest.first() {
            offset = Some(0);
            end += 1;
        } else if let Some((seconds, len)) = zone(rest) {
            offset = Some(seconds);
            end += len;
        } else if rest.first() == Some(&b' ')
            && let Some((seconds, len)) = zone(&rest[1..])
        {
            offset = Some(seconds);
            end += 1 + len;
        }
        Some((Stamp::checked(i32::try_from(year).ok(), month, day, of_day, offset)?, end))
    }

    /// Seconds or milliseconds since the epoch, told apart by their size.
    pub fn epoch(value: f64) -> Option<Stamp> {
        if !(0.0..1e19).contains(&value) {
            return None;
        }
        let nanos = match value {
            v if v < 1e11 => v * 1e9,
            v if v < 1e14 => v * 1e6,
            v if v < 1e17 => v * 1e3,
            v => v,
        };
        if nanos >= LATEST_NANOS {
            return None;
        }
        // Microseconds are all that a float of this size holds.
        Some(Stamp::at(Moment((nanos / 1e3).round() as i64 * 1000), 0))
    }
}

/// The year 2255: later moments don't fit into nanoseconds, and no log is of then.
const LATEST_NANOS: f64 = 9e18;

/// `hh:mm:ss` with a fraction or without, in nanoseconds, and its length.
pub fn time_of_day(text: &[u8]) -> Option<(i64, usize)> {
    let hour = fixed::<2>(text)?;
    let minute = fixed::<2>(text.get(3..)?)?;
    let second = fixed::<2>(text.get(6..)?)?;
    if text.get(2) != Some(&b':') || text.get(5) != Some(&b':') || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let seconds = i64::from(hour) * 3600 + i64::from(minute) * 60 + i64::from(second);
    let mut nanos = seconds * SECOND;
    let mut len = 8;
    if matches!(text.get(8), Some(b'.' | b',')) {
        let mut scale = SECOND / 10;
        let mut digits = 0;
        for b in text[9..].iter().take_while(|b| b.is_ascii_digit()) {
            nanos += i64::from(b - b'0') * scale;
            scale /= 10;
            digits += 1;
        }
        if digits > 0 {
            len += 1 + digits;
        }
    }
    Some((nanos, len))
}

/// `+08:00`, `-0700`, `+08`: seconds east, and the length.
fn zone(text: &[u8]) -> Option<(i32, usize)> {
    let sign = match text.first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let hours = i32::try_from(fixed::<2>(&text[1..])?).ok()?;
    let (minutes, len) = match text.get(3) {
        Some(b':') => (fixed::<2>(text.get(4..)?)?, 6),
        Some(b) if b.is_ascii_digit() => (fixed::<2>(&text[3..])?, 5),
        Some(_) | None => (0, 3),
    };
    Some((sign * (hours * 3600 + i32::try_from(minutes).ok()? * 60), len))
}

/// Month names as journald's locales write them. Only what begins a name tells: locales shorten differently.
const MONTHS: [(&str, u8); 59] = [
    ("jan", 1),
    ("feb", 2),
    ("mar", 3),
    ("apr", 4),
    ("may", 5),
    ("jun", 6),
    ("jul", 7),
    ("aug", 8),
    ("sep", 9),
    ("oct", 10),
    ("nov", 11),
    ("dec", 12),
    ("mär", 3),
    ("mai", 5),
    ("okt", 10),
    ("dez", 12),
    ("janv", 1),
    ("fév", 2),
    ("mars", 3),
    ("avr", 4),
    ("juin", 6),
    ("juil", 7),
    ("aoû", 8),
    ("déc", 12),
    ("ene", 1),
    ("abr", 4),
    ("ago", 8),
    ("dic", 12),
    ("gen", 1),
    ("mag", 5),
    ("giu", 6),
    ("lug", 7),
    ("set", 9),
    ("ott", 10),
    ("fev", 2),
    ("out", 10),
    ("янв", 1),
    ("фев", 2),
    ("мар", 3),
    ("апр", 4),
    ("мая", 5),
    ("май", 5),
    ("июн", 6),
    ("июл", 7),
    ("авг", 8),
    ("сен", 9),
    ("окт", 10),
    ("ноя", 11),
    ("дек", 12),
    ("sty", 1),
    ("lut", 2),
    ("kwi", 4),
    ("maj", 5),
    ("cze", 6),
    ("lip", 7),
    ("sie", 8),
    ("wrz", 9),
    ("paź", 10),
    ("lis", 11),
];

/// The month that a syslog prefix names.
pub fn month(token: &[u8]) -> Option<u8> {
    if let Some((value, len)) = number(token) {
        // 4月, 1월, or a bare number before one of them.
        let rest = &token[len..];
        let named = rest.starts_with("月".as_bytes()) || rest.starts_with("월".as_bytes());
        return (named && (1..=12).contains(&value)).then_some(u8::try_from(value).ok()?);
    }
    if let [a, b, c] = token {
        // The usual case, without an allocation.
        let key = [a.to_ascii_lowercase(), b.to_ascii_lowercase(), c.to_ascii_lowercase()];
        return MONTHS.iter().find(|(n, _)| n.as_bytes() == key).map(|(_, m)| *m);
    }
    if token.len() > 16 {
        return None;
    }
    let text = std::str::from_utf8(token).ok()?.trim_end_matches('.').to_lowercase();
    MONTHS.iter().rev().find(|(n, _)| text.starts_with(n)).map(|(_, m)| *m)
}

/// `Mon dd hh:mm:ss[.frac]`, as syslog and journald's short forms begin: the stamp and its length.
pub fn syslog(text: &[u8]) -> Option<(Stamp, usize)> {
    let blank = text.iter().take(24).position(|b| *b == b' ')?;
    let month = month(&text[..blank])?;
    let mut at = blank;
    while text.get(at) == Some(&b' ') && at < blank + 3 {
        at += 1;
    }
    let (day, len) = number(&text[at..])?;
    at += len;
    if text.get(at) != Some(&b' ') {
        return None;
    }
    at += 1;
    let (of_day, len) = time_of_day(text.get(at..)?)?;
    let day = u32::try_from(day).ok()?;
    Some((Stamp::checked(None, u32::from(month), day, of_day, None)?, at + len))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_klog_stamp_has_six_digits_of_a_second() {
        let (stamp, len) = Stamp::klog(b"0316 04:31:21.080604     202 kubelet.go").expect("a stamp");
        assert_eq!((len, stamp.month, stamp.day), (20, 3, 16));
        assert_eq!(stamp.moment(2025, 0).0, 1_742_099_481_080_604_000);
        assert!(Stamp::klog(b"1119 21:50:46.467] Nov 19").is_none());
        assert!(Stamp::klog(b"1319 21:50:46.467123").is_none());
    }

    #[test]
    fn zones_are_read_in_every_spelling() {
        for text in [
            "2024-04-11 22:52:11.300878130+08:00",
            "2024-04-11T14:52:11.30087813Z",
            "2024-04-11 14:52:11.300878130 +0000 UTC",
            "2024-04-11 06:52:11.300878130 -0800 -08 m=+1.79",
        ] {
            let (stamp, _) = Stamp::rfc3339(text.as_bytes()).expect(text);
            assert_eq!(stamp.moment(1, 1).0, 1_712_847_131_300_878_130, "{text}");
        }
        let (stamp, _) = Stamp::rfc3339(b"2022-10-24 06:37:00 UTC; 1min").expect("a stamp");
        assert_eq!(stamp.offset, None);
    }

    #[test]
    fn prefixes_of_many_locales() {
        for (text, month, day) in [
            ("Mar 16 04:31:21 host", 3, 16),
            ("Jun  8 09:34:01 node1", 6, 8),
            ("Jan 06 10:10:24.555468 host", 1, 6),
            ("4月 11 22:52:11 node7", 4, 11),
            ("1월 12 22:52:11 node7", 1, 12),
            ("Mär 01 22:52:11 node7", 3, 1),
            ("févr. 11 22:52:11 node7", 2, 11),
            ("juil. 11 22:52:11 node7", 7, 11),
        ] {
            let (stamp, _) = syslog(text.as_bytes()).expect(text);
            assert_eq!((stamp.month, stamp.day), (month, day), "{text}");
        }
        assert!(syslog(b"Starting up now 11:22:33").is_none());
    }

    #[test]
    fn epochs_are_told_apart_by_size() {
        let ms = Stamp::epoch(1_655_581_336_241.710_4).expect("a stamp").moment(0, 0);
        assert_eq!(ms.0, 1_655_581_336_241_710_000);
        let s = Stamp::epoch(1_655_581_336.25).expect("a stamp").moment(0, 0);
        assert_eq!(s.0, 1_655_581_336_250_000_000);
        assert!(Stamp::epoch(f64::NAN).is_none());
        assert!(Stamp::epoch(5e10).is_none(), "a second of the year 3554 has no nanoseconds");
    }

    #[test]
    fn dates_go_there_and_back() {
        for days in [-1, 0, 59, 11_016, 19_782, 47_540] {
            let (y, m, d) = civil_from_days(days);
            assert_eq!(days_from_civil(y, m, d), days);
        }
        assert_eq!(civil_from_days(19_782), (2024, 2, 29));
    }
}
