//! Raw requests: on the socket, where the owner asks, and over TLS, where a stranger does.

use super::node::{LONG, Node};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub code: u16,
    pub body: String,
    /// The texts of its `Warning` headers.
    pub warnings: Vec<String>,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }

    /// Every refusal is a v1.Status that says the same code.
    pub fn is_refusal(&self, code: u16) {
        let status = self.json();
        assert_eq!((self.code, &status["kind"]), (code, &"Status".into()), "{self:?}");
        assert_eq!(status["code"], code, "{self:?}");
    }
}

pub fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut text = format!("{method} {path} HTTP/1.1\r\nHost: node\r\nConnection: close\r\n");
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    if !body.is_empty() {
        text += &format!("Content-Length: {}\r\n", body.len());
    }
    let mut bytes = (text + "\r\n").into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

pub fn socket(node: &Node) -> UnixStream {
    let stream = UnixStream::connect(node.data().join("api.sock")).expect("connect to the socket");
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream
}

/// As the owner.
pub fn ask(node: &Node, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
    let mut stream = socket(node);
    // A server that refuses a body may answer and hang up before it has all come.
    stream.write_all(&request(method, path, headers, body)).ok();
    read_answer(stream)
}

pub fn create(node: &Node, path: &str, object: &Value) -> Answer {
    ask(node, "POST", path, &[("Content-Type", "application/json")], object.to_string().as_bytes())
}

/// Over TLS, with nothing to show, or with somebody's certificate.
pub fn tls(node: &Node, kubeconfig: Option<&Path>) -> StreamOwned<ClientConnection, TcpStream> {
    tls_speaking(node, kubeconfig, &[])
}

/// The same, offering these protocols.
pub fn tls_speaking(
    node: &Node,
    kubeconfig: Option<&Path>,
    protocols: &[&[u8]],
) -> StreamOwned<ClientConnection, TcpStream> {
    let mut roots = RootCertStore::empty();
    let ca = CertificateDer::from_pem_file(node.data().join("pki/ca.crt")).expect("the authority");
    roots.add(ca).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match kubeconfig {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let config: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
            let user = &config["users"][0]["user"];
            let pem = |field: &str| base64_decoded(user[field].as_str().unwrap());
            let certificate = CertificateDer::from_pem_slice(&pem("client-certificate-data")).unwrap();
            let key = PrivateKeyDer::from_pem_slice(&pem("client-key-data")).unwrap();
            builder.with_client_auth_cert(vec![certificate], key).unwrap()
        }
    };
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let stream = TcpStream::connect(node.address()).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    StreamOwned::new(ClientConnection::new(Arc::new(config), name).unwrap(), stream)
}

pub fn ask_tls(node: &Node, kubeconfig: Option<&Path>, bytes: &[u8]) -> Answer {
    let mut stream = tls(node, kubeconfig);
    stream.write_all(bytes).unwrap();
    read_answer(stream)
}

/// Reads a whole answer: up to its stated length, chunk by chunk, or up to the end.
pub fn read_answer(stream: impl Read) -> Answer {
    let mut reader = BufReader::new(stream);
    let head = read_head(&mut reader);
    let code = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    let mut body = Vec::new();
    match header(&head, "content-length").and_then(|length| length.parse().ok()) {
        Some(length) => {
            body.resize(length, 0);
            reader.read_exact(&mut body).expect("the whole body");
        }
        None => {
            while let Some(chunk) = read_chunk(&mut reader) {
                body.extend(chunk);
            }
        }
    }
    Answer { code, body: String::from_utf8_lossy(&body).into_owned(), warnings: warnings_in(&head) }
}

pub fn read_head(reader: &mut impl BufRead) -> String {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).unwrap_or(0) == 0 {
            break;
        }
    }
    head
}

pub fn read_chunk(reader: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut length = String::new();
    reader.read_line(&mut length).ok()?;
    let length = usize::from_str_radix(length.trim(), 16).ok().filter(|length| *length > 0)?;
    let mut chunk = vec![0; length + 2];
    reader.read_exact(&mut chunk).ok()?;
    chunk.truncate(length);
    Some(chunk)
}

fn warnings_in(head: &str) -> Vec<String> {
    let fields = head.lines().filter_map(|line| line.split_once(": "));
    let warnings = fields.filter(|(name, _)| name.eq_ignore_ascii_case("warning"));
    let quoted =
        |text: &str| text.strip_prefix("299 - \"")?.strip_suffix('"').map(|text| text.replace("\\\"", "\""));
    warnings.filter_map(|(_, text)| quoted(text)).collect()
}

fn header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    let mut lines = head.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

fn base64_decoded(text: &str) -> Vec<u8> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let (mut bits, mut count, mut out) = (0u32, 0, Vec::new());
    for byte in text.bytes().filter(|byte| *byte != b'=') {
        bits = bits << 6 | u32::from(digit(byte));
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count & 0xff) as u8);
        }
    }
    out
}

/// A watch on the socket: its events as they come.
pub struct Watch {
    reader: BufReader<UnixStream>,
    /// What was read; from this place on it was not given out yet.
    rest: Vec<u8>,
    at: usize,
}

impl Watch {
    pub fn open(node: &Node, path: &str) -> Watch {
        try_watch(node, path).unwrap_or_else(|| panic!("{path} is not watched"))
    }
}

/// A watch, if the node is there and grants it.
pub fn try_watch(node: &Node, path: &str) -> Option<Watch> {
    let mut stream = UnixStream::connect(node.data().join("api.sock")).ok()?;
    stream.set_read_timeout(Some(LONG)).ok()?;
    stream.write_all(&request("GET", path, &[], b"")).ok()?;
    let mut reader = BufReader::new(stream);
    let head = read_head(&mut reader);
    head.starts_with("HTTP/1.1 200").then_some(Watch { reader, rest: Vec::new(), at: 0 })
}

/// An answer, if the node is there and gives a whole one.
pub fn try_ask(node: &Node, bytes: &[u8]) -> Option<Answer> {
    let mut stream = UnixStream::connect(node.data().join("api.sock")).ok()?;
    stream.set_read_timeout(Some(LONG)).ok()?;
    stream.write_all(bytes).ok()?;
    let mut whole = Vec::new();
    stream.read_to_end(&mut whole).ok()?;
    let text = String::from_utf8(whole).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let length: usize = header(head, "content-length")?.parse().ok()?;
    let code = head.split(' ').nth(1)?.parse().ok()?;
    (body.len() == length).then(|| Answer { code, body: body.to_owned(), warnings: warnings_in(head) })
}

impl Watch {
    /// The next event as it was sent.
    pub fn line(&mut self) -> Option<Vec<u8>> {
        loop {
            let mut line = Vec::new();
            // Far quicker than a search of our own in a build that is not optimized.
            (&self.rest[self.at..]).read_until(b'\n', &mut line).ok()?;
            if line.last() == Some(&b'\n') {
                self.at += line.len();
                return Some(line);
            }
            self.rest = line;
            self.at = 0;
            self.rest.extend(read_chunk(&mut self.reader)?);
        }
    }
}

impl Iterator for Watch {
    type Item = Value;

    fn next(&mut self) -> Option<Value> {
        serde_json::from_slice(&self.line()?).ok()
    }
}
