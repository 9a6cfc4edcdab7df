//! The tables as pictures and as text, for SEMANTICS.md: drawn from the rows, so that they can't say anything else.

use super::{By, NEEDS, Needs, Row, allocation, container, pod, sandbox, volume};
use std::fmt::{Debug, Write};

/// Every machine: its title, its diagram, its rows.
pub fn all() -> String {
    let mut text = String::new();
    machine(&mut text, "A pod", pod::TABLE);
    machine(&mut text, "A volume's life", volume::TABLE);
    machine(&mut text, "A container's life", container::TABLE);
    machine(&mut text, "A sandbox", sandbox::TABLE);
    machine(&mut text, "A promise", allocation::TABLE);
    rules(&mut text);
    text.push_str("### What the needs mean\n\n| need | meaning |\n|---|---|\n");
    for (_, word, meaning) in NEEDS {
        let _ = writeln!(text, "| {word} | {meaning} |");
    }
    text
}

fn machine<S: Debug + Copy + PartialEq>(text: &mut String, title: &str, table: &[Row<S>]) {
    let _ = write!(text, "### {title}\n\n```mermaid\nstateDiagram-v2\n");
    for row in table.iter().filter(|row| row.by != By::Crash) {
        let needs = needs(row.needs);
        let _ = writeln!(text, "    {:?} --> {:?}: {}{needs}", row.from, row.to, row.act);
    }
    text.push_str("```\n\n");
    rows(text, table);
}

fn rows<S: Debug>(text: &mut String, table: &[Row<S>]) {
    text.push_str("| from | by | to | needs | says |\n|---|---|---|---|---|\n");
    for row in table {
        let needs: Vec<&str> = row.needs.words().collect();
        let (by, needs) = (who(row.by), needs.join(", "));
        let _ =
            writeln!(text, "| {:?} | {} ({by}) | {:?} | {needs} | {} |", row.from, row.act, row.to, row.says);
    }
    text.push('\n');
}

fn rules(text: &mut String) {
    text.push_str("### Two moves without states of their own\n\n");
    text.push_str("| what | by | needs | says |\n|---|---|---|---|\n");
    for (what, row) in allocation::TRANSACTION
        .iter()
        .map(|row| ("the allocation", row))
        .chain(container::DOOM.iter().map(|row| ("a container's life is told to end", row)))
    {
        let needs: Vec<&str> = row.needs.words().collect();
        let _ = writeln!(
            text,
            "| {what} | {} ({}) | {} | {} |",
            row.act,
            who(row.by),
            needs.join(", "),
            row.says
        );
    }
    text.push('\n');
}

fn needs(needs: Needs) -> String {
    let words: Vec<&str> = needs.words().collect();
    if words.is_empty() { String::new() } else { format!(" [{}]", words.join(", ")) }
}

fn who(by: By) -> &'static str {
    match by {
        By::Crash => "crash",
        By::Look => "look",
        By::World => "world",
        By::Fault => "fault",
        By::Allocation => "allocation",
        By::Node => "node",
    }
}
