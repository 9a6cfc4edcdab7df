//! The specification as people read it, in SEMANTICS.md, is drawn from the tables that are checked; this keeps it so.

use nodefold_model::spec::diagram;
use std::path::PathBuf;

const BEGINS: &str = "<!-- The specification: drawn from model/src/spec, don't edit; NODEFOLD_BLESS=1 cargo test --test specification -->\n";
const ENDS: &str = "<!-- End of the specification -->\n";

#[test]
fn what_semantics_md_shows_is_what_the_tables_say() {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("SEMANTICS.md");
    let text = std::fs::read_to_string(&file).expect("SEMANTICS.md");
    let begins = text.find(BEGINS).expect("the specification's first line") + BEGINS.len();
    let ends = text.find(ENDS).expect("the specification's last line");
    let wanted = format!("\n{}\n", diagram::all());
    if std::env::var_os("NODEFOLD_BLESS").is_some() {
        let fresh = format!("{}{wanted}{}", &text[..begins], &text[ends..]);
        std::fs::write(&file, fresh).expect("SEMANTICS.md can be written");
        return;
    }
    assert!(
        text[begins..ends] == *wanted,
        "SEMANTICS.md is not current: NODEFOLD_BLESS=1 cargo test --test specification"
    );
}

#[test]
fn every_row_says_who_says_so_and_every_state_can_be_left_or_is_an_end() {
    let text = diagram::all();
    assert!(text.lines().filter(|line| line.starts_with("| ")).count() > 100, "all rows are shown");
    assert!(!text.contains("|  |\n"), "a row without a source");
    for machine in ["A pod", "A volume's life", "A container's life", "A sandbox", "A promise"] {
        assert!(text.contains(&format!("### {machine}\n\n```mermaid\nstateDiagram-v2\n")), "{machine}");
    }
}
