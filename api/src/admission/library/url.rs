//! URLs: `url("https://example.com:80/a?b=c").getPort()`.
//!
//! Read as Go reads a request's URI, which is what Kubernetes asks: absolute, or an absolute path; spaces in a path are forgiven, and
//! a fragment is no part of its own.

use super::{opaque, texts};
use crate::admission::values::Fields;
use cel::common::types::{CelBool, CelString, Type};
use cel::common::value::Val;
use cel::{DeclarationError, Env, ExecutionError};
use std::collections::BTreeMap;

/// Declares them.
pub(super) fn extension(env: &mut Env) -> Result<(), DeclarationError> {
    cel::add_overload!(env, fn url_of: (CelString) -> Result<Url>, name = "url")?;
    cel::add_overload!(env, fn is_url: (CelString) -> CelBool, name = "isURL")?;
    cel::add_member_overload!(env, fn get_scheme: (Url) -> CelString)?;
    cel::add_member_overload!(env, fn get_host: (Url) -> CelString)?;
    cel::add_member_overload!(env, fn get_hostname: (Url) -> CelString)?;
    cel::add_member_overload!(env, fn get_port: (Url) -> CelString)?;
    cel::add_member_overload!(env, fn get_escaped_path: (Url) -> CelString)?;
    cel::add_member_overload!(env, fn get_query: (Url) -> Fields)
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Url {
    scheme: String,
    /// With its port.
    host: String,
    /// As it was written.
    path: String,
    query: String,
}

static URL: Type = Type::new_unspecified_type("kubernetes.URL");

opaque!(Url, URL);

fn read(text: &str) -> Result<Url, &'static str> {
    if text.is_empty() {
        return Err("empty url");
    }
    if text.bytes().any(|b| b < b' ' || b == 0x7f) {
        return Err("invalid control character in URL");
    }
    let (scheme, rest) = scheme(text)?;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut url = Url { scheme, host: String::new(), path: String::new(), query: query.to_owned() };
    if !rest.starts_with('/') {
        // `mailto:x` has neither host nor path.
        return if url.scheme.is_empty() { Err("invalid URI for request") } else { Ok(url) };
    }
    let path = match rest.strip_prefix("//").filter(|_| !url.scheme.is_empty()) {
        Some(authority) => {
            let end = authority.find('/').unwrap_or(authority.len());
            url.host = host(&authority[..end])?;
            &authority[end..]
        }
        None => rest,
    };
    if unescaped(path).is_none() {
        return Err("invalid URL escape");
    }
    path.clone_into(&mut url.path);
    Ok(url)
}

fn scheme(text: &str) -> Result<(String, &str), &'static str> {
    for (at, c) in text.char_indices() {
        match c {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if at > 0 => {}
            ':' if at > 0 => return Ok((text[..at].to_ascii_lowercase(), &text[at + 1..])),
            ':' => return Err("missing protocol scheme"),
            _ => break,
        }
    }
    Ok((String::new(), text))
}

fn host(authority: &str) -> Result<String, &'static str> {
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let after = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map(|(_, after)| after).ok_or("missing ']' in host")?,
        None => host.find(':').map_or("", |at| &host[at..]),
    };
    let is_port =
        after.is_empty() || after.strip_prefix(':').is_some_and(|p| p.bytes().all(|b| b.is_ascii_digit()));
    if !is_port {
        return Err("invalid port after host");
    }
    let forbidden = |c: char| matches!(c, ' ' | '"' | '<' | '>' | '\\' | '^' | '`' | '{' | '|' | '}' | '#');
    if host.contains(forbidden) { Err("invalid character in host name") } else { Ok(host.to_owned()) }
}

/// Without its escapes; none if one of them is no hexadecimal number.
fn unescaped(text: &str) -> Option<Vec<u8>> {
    let bytes = text.as_bytes();
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(byte) = bytes.get(at) {
        if *byte == b'%' {
            let digits = text.get(at + 1..at + 3)?;
            out.push(u8::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))?);
            at += 3;
        } else {
            out.push(*byte);
            at += 1;
        }
    }
    Some(out)
}

/// What is wrong with it.
pub(super) fn problem(text: &str) -> Option<&'static str> {
    read(text).err()
}

fn url_of(text: &CelString<'_>) -> Result<Url, ExecutionError> {
    let wrong = |why| {
        let what = format!("URL parse error during conversion from string: {:?}: {why}", text.inner());
        ExecutionError::function_error("url", what)
    };
    read(text.inner()).map_err(wrong)
}

fn is_url(text: &CelString<'_>) -> CelBool {
    CelBool::from(read(text.inner()).is_ok())
}

fn get_scheme(url: &Url) -> CelString<'static> {
    CelString::from(url.scheme.clone())
}

fn get_host(url: &Url) -> CelString<'static> {
    CelString::from(url.host.clone())
}

/// Host and port; an IPv6 address without its brackets.
fn parts(url: &Url) -> (&str, &str) {
    let in_brackets = url.host.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    match in_brackets {
        Some((host, port)) => (host, port.trim_start_matches(':')),
        None => url.host.split_once(':').unwrap_or((&url.host, "")),
    }
}

fn get_hostname(url: &Url) -> CelString<'static> {
    CelString::from(parts(url).0.to_owned())
}

fn get_port(url: &Url) -> CelString<'static> {
    CelString::from(parts(url).1.to_owned())
}

/// As it was written, if every byte may stand for itself in a path.
fn get_escaped_path(url: &Url) -> CelString<'static> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&b);
    let written = |b: u8| plain(b) || b"%!'()*[]".contains(&b);
    if url.path.bytes().all(written) {
        return CelString::from(url.path.clone());
    }
    let mut escaped = String::new();
    for byte in unescaped(&url.path).unwrap_or_default() {
        match plain(byte) {
            true => escaped.push(char::from(byte)),
            false => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    CelString::from(escaped)
}

/// The values of each key, in order.
fn get_query(url: &Url) -> Fields {
    let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for pair in url.query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let read =
            |text: &str| unescaped(&text.replace('+', " ")).and_then(|bytes| String::from_utf8(bytes).ok());
        if let (Some(key), Some(value)) = (read(key), read(value)) {
            values.entry(key).or_default().push(value);
        }
    }
    let lists = values
        .into_iter()
        .map(|(key, values)| (key, Ok(Box::new(texts(values.into_iter())) as Box<dyn Val>)));
    Fields::new(lists)
}
