//! What a simulated process does: `echo`, `sleep`, `exit`, and `while true; do …; done` around them, as in a shell's script. Any
//! other command just runs.

use nodefold_core::time::Nanos;
use serde_json::Value;

/// A step of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Writes a line.
    Say(String),
    /// Waits.
    Sleep(Nanos),
    /// Runs until it is stopped.
    Forever,
    /// Ends.
    Exit(i32),
}

/// A program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    steps: Vec<Step>,
    /// From this step on it begins again after the last.
    again_from: Option<usize>,
}

/// A loop that does not wait would never let time pass.
const LEAST_PAUSE: Nanos = Nanos::millis(10);

impl Program {
    /// The program of a container's definition.
    pub fn read(container: &Value) -> Program {
        let words = |field: &str| -> Vec<String> {
            let words = container[field].as_array().into_iter().flatten();
            words.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let command: Vec<String> = words("command").into_iter().chain(words("args")).collect();
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        match command.as_slice() {
            ["sh" | "/bin/sh", "-c" | "-ec", script, ..] => Program::script(script),
            [] => Program { steps: vec![Step::Forever], again_from: None },
            words => Program { steps: vec![step(words), Step::Exit(0)], again_from: None },
        }
    }

    /// The same, but that what would run for ever ends well soon: what an init container's own program does.
    pub fn that_ends(self) -> Program {
        if self.steps == [Step::Forever] {
            return Program { steps: vec![Step::Sleep(Nanos::millis(100)), Step::Exit(0)], again_from: None };
        }
        self
    }

    /// The step of that number.
    pub fn step(&self, at: usize) -> Step {
        let length = self.steps.len();
        let at = match self.again_from {
            Some(from) if at >= length && length > from => from + (at - from) % (length - from),
            Some(_) | None => at,
        };
        self.steps.get(at).cloned().unwrap_or(Step::Exit(0))
    }

    fn script(script: &str) -> Program {
        let mut steps = Vec::new();
        let mut again_from = None;
        let statements = script.split([';', '\n', '&']).map(str::trim).filter(|s| !s.is_empty());
        for statement in statements {
            let statement = statement.strip_prefix("do ").unwrap_or(statement);
            match statement.split_whitespace().collect::<Vec<_>>().as_slice() {
                ["while", "true" | ":"] => again_from = Some(steps.len()),
                ["done"] => break,
                ["do"] | ["trap", ..] | ["set", ..] => {}
                ["exec", words @ ..] => steps.push(step(words)),
                words => steps.push(step(words)),
            }
        }
        if let Some(from) = again_from
            && !steps[from..].iter().any(|s| matches!(s, Step::Sleep(_) | Step::Forever | Step::Exit(_)))
        {
            steps.push(Step::Sleep(LEAST_PAUSE));
        }
        Program { steps, again_from }
    }
}

fn step(words: &[&str]) -> Step {
    match words {
        ["echo", text @ ..] => Step::Say(text.join(" ").replace(['"', '\''], "")),
        ["sleep", "infinity" | "inf"] => Step::Forever,
        ["sleep", time] => match time.trim_end_matches('s').parse::<f64>() {
            Ok(seconds) if (0.0..1e9).contains(&seconds) => Step::Sleep(Nanos((seconds * 1e9) as u64)),
            Ok(_) | Err(_) => Step::Forever,
        },
        ["exit"] | ["true"] => Step::Exit(0),
        ["false"] => Step::Exit(1),
        ["exit", code] => Step::Exit(code.parse().unwrap_or(2)),
        _ => Step::Forever,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn steps(container: &Value, count: usize) -> Vec<Step> {
        let program = Program::read(container);
        (0..count).map(|at| program.step(at)).collect()
    }

    #[test]
    fn scripts_and_single_commands() {
        let say = |text: &str| Step::Say(text.to_owned());
        let script = json!({"command": ["sh", "-c", "echo \"a b\"; sleep 2; exit 3"]});
        assert_eq!(steps(&script, 3), [say("a b"), Step::Sleep(Nanos::secs(2)), Step::Exit(3)]);
        let again =
            json!({"command": ["sh", "-c"], "args": ["echo up; while true; do echo tick; sleep 1; done"]});
        let second = Step::Sleep(Nanos::secs(1));
        assert_eq!(steps(&again, 5), [say("up"), say("tick"), second.clone(), say("tick"), second]);
        let sleep = json!({"command": ["sleep", "5"]});
        assert_eq!(steps(&sleep, 2), [Step::Sleep(Nanos::secs(5)), Step::Exit(0)]);
        assert_eq!(steps(&json!({}), 1), [Step::Forever]);
        assert_eq!(steps(&json!({"command": ["nginx", "-g", "x"]}), 1), [Step::Forever]);
        let busy = json!({"command": ["sh", "-c", "while true; do echo x; done"]});
        assert_eq!(steps(&busy, 2), [say("x"), Step::Sleep(LEAST_PAUSE)]);
    }
}
