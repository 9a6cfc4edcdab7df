//! The picture as one HTML page: needs no network, and no word of the evidence can become markup or script.
//!
//! The evidence is a JSON block whose every `<` is escaped; the script puts it into the page as text only. The page's policy
//! (CSP) lets run this script and this style alone, known by their hashes, and load nothing.

use super::Picture;
use anyhow::Result;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest, Sha256};

const FRAME: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
/// One script, in rooms of its own: each part uses only what stands before it.
const SCRIPT: &str = concat!(
    "\"use strict\";\n(() => {\n",
    include_str!("page/data.js"),
    include_str!("page/scale.js"),
    include_str!("page/look.js"),
    include_str!("page/lanes.js"),
    include_str!("page/strip.js"),
    include_str!("page/panel.js"),
    include_str!("page/input.js"),
    include_str!("page/main.js"),
    "})();\n",
);

/// Writes the page.
pub fn write(picture: &Picture) -> Result<String> {
    let data = without_markup(&serde_json::to_string(picture)?);
    let policy = format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; img-src data:; base-uri 'none'; form-action 'none'",
        hash(SCRIPT),
        hash(STYLE)
    );
    let mut page = String::with_capacity(FRAME.len() + STYLE.len() + SCRIPT.len() + data.len());
    for (i, piece) in FRAME.split("@@").enumerate() {
        page.push_str(match (i % 2, piece) {
            (0, text) => text,
            (_, "policy") => &policy,
            (_, "style") => STYLE,
            (_, "script") => SCRIPT,
            (_, "data") => &data,
            (_, "title") => "nodefold view",
            (_, unknown) => anyhow::bail!("the page's frame asks for {unknown}"),
        });
    }
    Ok(page)
}

/// JSON in which nothing can end the block that it stands in, and no line separator that old scripts mind.
fn without_markup(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            c => out.push(c),
        }
    }
    out
}

fn hash(text: &str) -> String {
    BASE64_STANDARD.encode(Sha256::digest(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_can_end_its_block() {
        let hostile = r#"{"text":"</script><script>alert(1)</script><!-- & -->"}"#;
        let safe = without_markup(hostile);
        assert!(!safe.contains(['<', '>', '&']), "{safe}");
        let back: serde_json::Value = serde_json::from_str(&safe).expect("still JSON");
        assert_eq!(back["text"], "</script><script>alert(1)</script><!-- & -->");
    }

    #[test]
    fn the_script_never_makes_markup_of_text() {
        for banned in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
            "DOMParser",
        ] {
            assert!(!SCRIPT.contains(banned), "{banned}");
        }
        assert!(!SCRIPT.contains("</script") && !STYLE.contains("</style"));
        assert!(!SCRIPT.contains("http:") && !SCRIPT.contains("https:") && !STYLE.contains("url("));
    }
}
