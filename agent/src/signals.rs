//! Signals by name, as images and manifests spell them.

/// Linux' signals by their numbers from 1 on.
const NAMES: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE",
    "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ",
    "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
];

/// A signal's number by its name, with or without `SIG`, or by its number.
pub fn number(name: &str) -> Option<i32> {
    if let Ok(number) = name.parse::<i32>() {
        return (1..=31).contains(&number).then_some(number);
    }
    let name = name.strip_prefix("SIG").unwrap_or(name);
    NAMES.iter().position(|known| *known == name).and_then(|at| i32::try_from(at + 1).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_known_by_name_and_by_number() {
        for (name, expected) in
            [("SIGTERM", Some(15)), ("QUIT", Some(3)), ("9", Some(9)), ("SIGNOPE", None), ("77", None)]
        {
            assert_eq!(number(name), expected, "{name}");
        }
    }
}
