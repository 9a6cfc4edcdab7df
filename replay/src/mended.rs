//! What editors, web pages, pagers and terminals made of a line's own text (node-logs §1.7), undone. Takes no prefix off and reads
//! nothing: a line that nobody touched comes back as `None`.

use crate::scan;
use crate::wrapper::{begins_record, is_record};

/// Whether a line may have colours. `plain`: it has none of the signs that terminals know; pagers write them out, at either end.
pub fn may_be_coloured(line: &[u8], plain: bool) -> bool {
    !plain || matches!(line.first(), Some(b'^' | b'E')) || line.last() == Some(&b'm')
}

/// The line without what colours it: terminal sequences that begin with ESC and `[`, and what pagers write for one.
pub fn uncoloured(line: &[u8]) -> Option<Vec<u8>> {
    let written = ["^[[", "ESC["];
    let as_text = |w: &&str| {
        let tail = &line[line.len().saturating_sub(8)..];
        line.starts_with(w.as_bytes()) || (line.ends_with(b"m") && scan::has(tail, w.as_bytes()))
    };
    let as_text = written.iter().any(as_text);
    if memchr::memchr(0x1b, line).is_none() && !as_text {
        return None;
    }
    let mut out = Vec::with_capacity(line.len());
    let mut at = 0;
    while at < line.len() {
        let rest = &line[at..];
        let sign = match rest[0] {
            0x1b => Some(1),
            _ if as_text => written.iter().find(|w| rest.starts_with(w.as_bytes())).map(|w| w.len() - 1),
            _ => None,
        };
        match sign {
            Some(sign) if rest.get(sign) == Some(&b'[') => {
                let parameters = rest[sign + 1..].iter().take_while(|b| !(0x40..=0x7e).contains(*b)).count();
                at = (at + sign + parameters + 2).min(line.len());
            }
            Some(sign) => at += sign,
            None => {
                out.push(rest[0]);
                at += 1;
            }
        }
    }
    Some(out)
}

/// What stands behind a line and is none of it: a page's line break or tag, a table's last rule, bold, a shell's or a string's
/// way to say that the line ends.
pub fn without_end(text: &[u8]) -> &[u8] {
    const ENDS: [&str; 11] =
        ["<br>", "<br/>", "<br />", "</p>", "</pre>", "</code>", "</li>", "</td>", " |", "**", "{noformat}"];
    // Most lines end with none of their last signs.
    if !matches!(text.last(), Some(b'>' | b'|' | b'*' | b'}' | b'n' | b'\\')) {
        return text;
    }
    let text = ENDS.iter().find_map(|end| text.strip_suffix(end.as_bytes())).unwrap_or(text);
    if let Some(ended) = text.strip_suffix(b"\\n")
        && matches!(ended.last(), Some(b'"' | b']' | b'}' | b')'))
    {
        return ended;
    }
    let slashes = text.iter().rev().take_while(|b| **b == b'\\').count();
    if slashes == 1 { text[..text.len() - 1].trim_ascii_end() } else { text }
}

/// What stands before a line's own beginning on a page or in a program's print-out of it.
pub fn without_begin(text: &[u8]) -> &[u8] {
    const BEGINS: [&str; 8] =
        ["<p>", "<pre>", "<code>", "<li>", "<td>", "{noformat}", "{code}", "<pre><code>"];
    if !matches!(text.first(), Some(b'<' | b'{' | b'b')) {
        return text;
    }
    let text = BEGINS.iter().rev().find_map(|tag| text.strip_prefix(tag.as_bytes())).unwrap_or(text);
    let printed = text.strip_prefix(b"b'").filter(|rest| is_record(rest));
    printed.map_or(text, |rest| rest.strip_suffix(b"'").unwrap_or(rest))
}

/// The text without the backslashes that markdown wants before signs of its own. In a Go string none of these is escaped.
pub fn without_markdown(text: &[u8]) -> Option<Vec<u8>> {
    scan::has(text, b"\\]").then_some(())?;
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let escaped = text.get(at + 1).filter(|_| text[at] == b'\\');
        match escaped {
            Some(own @ (b'"' | b'\'' | b'\\')) => out.extend_from_slice(&[b'\\', *own]),
            Some(sign) if sign.is_ascii_punctuation() => out.push(*sign),
            Some(_) | None => {
                out.push(text[at]);
                at += 1;
                continue;
            }
        }
        at += 2;
    }
    Some(out)
}

/// The text with the quotes that word processors make of straight ones made straight again.
pub fn straightened(text: &[u8]) -> Option<Vec<u8>> {
    let curly = |at: &[u8]| ["\u{201c}", "\u{201d}", "\u{201e}"].iter().any(|q| at.starts_with(q.as_bytes()));
    let first = memchr::memchr_iter(0xe2, text).find(|at| curly(&text[*at..]))?;
    let mut out = text[..first].to_vec();
    let mut at = first;
    while at < text.len() {
        if curly(&text[at..]) {
            out.push(b'"');
            at += 3;
        } else {
            out.push(text[at]);
            at += 1;
        }
    }
    Some(out)
}

/// Behind a table's first cells (`2026-11-30T18:48:57Z,"`) or a list's sign, the string with the record.
pub fn cell(line: &[u8]) -> &[u8] {
    const LAST_BEGIN: usize = 160;
    const SECOND_CELL: usize = 62;
    let line = scan::trim_start(line);
    let line = line.strip_prefix(b"- ").filter(|rest| rest.starts_with(b"\"")).unwrap_or(line);
    if matches!(line.first(), Some(b'{' | b'[')) {
        return line;
    }
    let window = &line[..line.len().min(LAST_BEGIN)];
    let mut cells = memchr::memmem::find_iter(window, b",\"");
    // The second cell may have whatever people put before a record; farther off only a record itself tells.
    let holds = |at: &usize| match *at < SECOND_CELL {
        true => is_record(line[at + 2..].strip_suffix(b"\"").unwrap_or(&line[at + 2..])),
        false => begins_record(&line[at + 2..]),
    };
    match cells.find(holds) {
        Some(at) => &line[at + 1..],
        None => line,
    }
}

/// The character that a web page writes by name or number, and how long that is. A hard space is a space.
fn entity(text: &[u8]) -> Option<(char, usize)> {
    const NAMED: [(&str, char); 6] =
        [("\u{a0}", ' '), ("&nbsp;", ' '), ("&quot;", '"'), ("&lt;", '<'), ("&gt;", '>'), ("&amp;", '&')];
    if let Some((written, sign)) = NAMED.iter().find(|(written, _)| text.starts_with(written.as_bytes())) {
        return Some((*sign, written.len()));
    }
    let rest = text.strip_prefix(b"&#")?;
    let (digits, radix, before) = match rest.strip_prefix(b"x").or_else(|| rest.strip_prefix(b"X")) {
        Some(digits) => (digits, 16, 3),
        None => (rest, 10, 2),
    };
    let len = digits.iter().take(8).position(|b| *b == b';')?;
    let code = u32::from_str_radix(std::str::from_utf8(&digits[..len]).ok()?, radix).ok()?;
    let sign = char::from_u32(code).map(|c| if c == '\u{a0}' { ' ' } else { c })?;
    Some((sign, before + len + 1))
}

/// The text without what a web page made of it: hard spaces, and characters written by name or number.
pub fn unescaped(text: &[u8]) -> Option<Vec<u8>> {
    let first = memchr::memchr2_iter(b'&', 0xc2, text).find(|at| entity(&text[*at..]).is_some())?;
    let mut out = text[..first].to_vec();
    let mut at = first;
    while at < text.len() {
        match entity(&text[at..]) {
            Some((sign, len)) => {
                out.extend_from_slice(sign.encode_utf8(&mut [0; 4]).as_bytes());
                at += len;
            }
            None => {
                out.push(text[at]);
                at += 1;
            }
        }
    }
    Some(out)
}

/// A record that is a string of something else: a table's cell with doubled quotes, or a string of JSON.
pub fn unquoted(line: &[u8]) -> Option<Vec<u8>> {
    let text = line.trim_ascii_end();
    let text = text.strip_suffix(b",").unwrap_or(text);
    if let Ok(inner) = serde_json::from_slice::<String>(text) {
        return is_record(inner.as_bytes()).then(|| inner.into_bytes());
    }
    let text = text.strip_prefix(b"\"").filter(|text| is_record(text))?;
    let text = text.strip_suffix(b"\"").unwrap_or(text);
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        at += usize::from(text[at..].starts_with(b"\"\""));
        out.push(text[at]);
        at += 1;
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_and_curly_quotes_go() {
        let line = b"\x1b[1;31mE0713 x\x1b[0m y";
        assert_eq!(uncoloured(line).as_deref(), Some(&b"E0713 x y"[..]));
        assert_eq!(uncoloured(b"plain"), None);
        assert_eq!(uncoloured(b"torn \x1b[1;3").as_deref(), Some(&b"torn "[..]));
        for pager in ["^[[31mE0713 x^[[0m", "ESC[31mE0713 xESC[0m"] {
            assert_eq!(uncoloured(pager.as_bytes()).as_deref(), Some(&b"E0713 x"[..]), "{pager}");
        }
        assert_eq!(
            without_markdown(br#"x\_y.go:1\] \"a\" c:\\b \*"#).as_deref(),
            Some(&br#"x_y.go:1] \"a\" c:\\b *"#[..])
        );
        assert_eq!(unescaped(b"a&#32;&#x22;b&#xffffff;&#;").as_deref(), Some(&b"a \"b&#xffffff;&#;"[..]));
        let text = "\u{201c}a \\\u{201c}b\\\u{201d} \u{2026}\u{201d}";
        assert_eq!(straightened(text.as_bytes()), Some("\"a \\\"b\\\" \u{2026}\"".as_bytes().to_vec()));
        assert_eq!(straightened("\u{2026}".as_bytes()), None);
        let page = "a\u{a0}\u{a0}&quot;b&#34; &amp;quot; &x; \u{b5}";
        assert_eq!(unescaped(page.as_bytes()).as_deref(), Some("a  \"b\" &quot; &x; \u{b5}".as_bytes()));
        assert_eq!(unescaped("&x; \u{b5}".as_bytes()), None);
        let record = r#"I0316 04:31:21.080604     202 kubelet.go:2474] "a" err="\"b\"""#;
        for quoted in
            [serde_json::Value::from(record).to_string(), format!("\"{}\",", record.replace('"', "\"\""))]
        {
            assert_eq!(unquoted(quoted.as_bytes()).as_deref(), Some(record.as_bytes()), "{quoted}");
        }
        assert_eq!(unquoted(b"\"a\""), None);
    }
}
