//! Who asks: by client certificate, by bearer token, or, on the socket, by the peer's user id.

use super::failure::Failure;
use super::hub::MASTERS;
use crate::fault::{Attempt, Fault};
use nodefold_api::admission::attributes::User;
use nodefold_core::ids::Name;
use std::path::Path;
use x509_parser::prelude::{FromDer, X509Certificate};

/// The other end of a connection, as far as the connection itself says.
#[derive(Clone, Debug)]
pub enum Peer {
    /// A client certificate that the authority signed.
    Certified(User),
    /// The owner of this node, on its socket.
    Owner,
    /// Nobody known.
    Unknown,
}

/// Tokens and whose they are.
#[derive(Default)]
pub struct Tokens {
    known: Vec<(String, User)>,
}

impl Tokens {
    /// Reads Kubernetes' own token file: `token,user,uid,"group1,group2"`. No file, no tokens.
    pub fn read(path: &Path) -> Result<Tokens, Fault> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Tokens::default()),
            Err(error) => return Err(error).attempt(|| format!("read {}", path.display())),
        };
        let mut known = Vec::new();
        for (i, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let mut parts = line.splitn(4, ',').map(str::trim);
            let (Some(token), Some(user), Some(uid)) = (parts.next(), parts.next(), parts.next()) else {
                let what = format!("{}, line {}: write token,user,uid,\"groups\"", path.display(), i + 1);
                return Err(Fault::refused(what));
            };
            let groups = parts.next().unwrap_or_default().trim_matches('"');
            let groups: Vec<String> =
                groups.split(',').map(|g| g.trim().to_owned()).filter(|g| !g.is_empty()).collect();
            known.push((token.to_owned(), User { uid: uid.into(), ..with_groups(user, &groups) }));
        }
        Ok(Tokens { known })
    }

    fn user(&self, token: &str) -> Option<&User> {
        self.known.iter().find(|(known, _)| is_same(known, token)).map(|(_, user)| user)
    }
}

/// How long it takes tells nothing of where the two differ.
fn is_same(known: &str, given: &str) -> bool {
    let differ = known.bytes().zip(given.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b));
    !known.is_empty() && known.len() == given.len() && differ == 0
}

/// A user in these groups besides those that the name implies.
pub fn with_groups(name: &str, groups: &[String]) -> User {
    let mut user = User::named(name);
    for group in groups.iter().rev() {
        let group = Name::from(group.as_str());
        if !user.groups.contains(&group) {
            user.groups.insert(0, group);
        }
    }
    user
}

/// The node's owner.
pub fn owner() -> User {
    with_groups("nodefold-admin", &[MASTERS.to_owned()])
}

/// The user that a verified client certificate names: its common name, its organizations as groups.
pub fn of_certificate(der: &[u8]) -> Peer {
    let Ok((_, certificate)) = X509Certificate::from_der(der) else { return Peer::Unknown };
    let subject = certificate.subject();
    let name = subject.iter_common_name().next().and_then(|name| name.as_str().ok());
    let groups: Vec<String> =
        subject.iter_organization().filter_map(|group| group.as_str().ok()).map(str::to_owned).collect();
    match name {
        Some(name) if !name.is_empty() => Peer::Certified(with_groups(name, &groups)),
        Some(_) | None => Peer::Unknown,
    }
}

/// Who asks. A token that is not known is refused, whatever else the connection says.
pub fn user(peer: &Peer, authorization: Option<&str>, tokens: &Tokens) -> Result<User, Failure> {
    if let Some(header) = authorization {
        let token = header.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        let known = token.and_then(|(_, token)| tokens.user(token.trim()));
        return known.cloned().ok_or_else(Failure::unauthorized);
    }
    match peer {
        Peer::Certified(user) => Ok(user.clone()),
        Peer::Owner => Ok(owner()),
        Peer::Unknown => Err(Failure::unauthorized()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn tokens_certificates_and_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("tokens.csv");
        std::fs::write(&file, "s3cret,jane,1,\"devs,ops\"\n\nother,joe,2\n").unwrap();
        let tokens = Tokens::read(&file).unwrap();
        let jane = user(&Peer::Unknown, Some("Bearer s3cret"), &tokens).unwrap();
        assert_eq!((&*jane.name, &*jane.uid), ("jane", "1"));
        assert_eq!(
            jane.groups.iter().map(|g| &**g).collect::<Vec<_>>(),
            ["devs", "ops", "system:authenticated"]
        );
        for bad in ["Bearer wrong", "Basic s3cret", "s3cret", "Bearer "] {
            assert_eq!(user(&Peer::Owner, Some(bad), &tokens).unwrap_err().code, 401, "{bad}");
        }
        assert_eq!(user(&Peer::Unknown, None, &tokens).unwrap_err().code, 401);
        assert_eq!(user(&Peer::Owner, None, &tokens).unwrap(), owner());
        assert!(matches!(of_certificate(b"no certificate"), Peer::Unknown));
        assert!(Tokens::read(dir.path()).is_err());
        std::fs::write(&file, "only\n").unwrap();
        assert!(Tokens::read(&file).is_err());
    }
}
