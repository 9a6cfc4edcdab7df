//! Where who runs this is not root: a node's namespaces are entered first thing, or some for one command.

use nodefold_agent::doctor;
use nodefold_agent::fault::{Attempt, Fault};
use nodefold_agent::layout::Layout;
use nodefold_agent::rootless::{self, Keeper};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Namespaces that go with the command that they are for.
pub struct Namespaces {
    keeper: Option<Keeper>,
    file: tempfile::TempPath,
}

impl Namespaces {
    /// Those of this command, if it needs any.
    pub fn for_now() -> Result<Option<Namespaces>, Fault> {
        if !rootless::is_wanted() {
            return Ok(None);
        }
        let made = tempfile::Builder::new().prefix("nodefold-keeper-").tempfile();
        let file = made.attempt(|| "make a file for a keeper of namespaces")?.into_temp_path();
        let keeper = rootless::begin(&file, &program()?, || Ok(())).map_err(none)?;
        Ok(Some(Namespaces { keeper, file }))
    }

    /// Whoever cleans up in a directory that was left finds them by it.
    pub fn show_in(&self, directory: &Path) -> Result<(), Fault> {
        let link = directory.join(rootless::FILE);
        fs::hard_link(&self.file, &link).attempt(|| format!("link {}", link.display()))
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        // Killed, it holds nothing any more.
        self.keeper.take().map(Keeper::end);
    }
}

/// Enters the namespaces of the node in this directory, for an agent: they stay when it ends.
pub fn enter(layout: &Layout) -> Result<(), Fault> {
    match rootless::is_wanted() {
        true => rootless::enter(layout.data(), &program()?).map(drop).map_err(none),
        false => Ok(()),
    }
}

/// What a look at the node in this directory is in, while it lives: the node's own namespaces, or some for now where it has none.
pub struct Look {
    nodes: Option<Keeper>,
    _own: Option<Namespaces>,
}

impl Look {
    /// Ends the node's keeper: nothing of the node is left.
    pub fn end(self, layout: &Layout) -> Result<(), Fault> {
        self.nodes.map_or(Ok(()), Keeper::end)?;
        match fs::remove_file(layout.data().join(rootless::FILE)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(error).attempt(|| "remove the keeper's file")
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

/// Enters what there is of the node in this directory.
pub fn look(layout: &Layout) -> Result<Look, Fault> {
    let nodes = if rootless::is_wanted() { rootless::join(layout.data())? } else { None };
    let own = if nodes.is_none() { Namespaces::for_now()? } else { None };
    Ok(Look { nodes, _own: own })
}

fn program() -> Result<PathBuf, Fault> {
    std::env::current_exe().attempt(|| "find this program")
}

/// All that this process lacks when it can have no namespaces either.
fn none(fault: Fault) -> Fault {
    match doctor::require() {
        Ok(_) => fault,
        Err(lacking) => Fault::refused(format!("{lacking}; nor has it namespaces of its own: {fault}")),
    }
}
