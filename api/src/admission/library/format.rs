//! Formats of names: `format.dns1123Label().validate(object.metadata.name)` is nothing, or what is wrong.

use super::{opaque, texts};
use crate::validate::names;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cel::common::types::{CelOptional, CelString, STRING_TYPE, Type};
use cel::common::value::{CowVal, Val};
use cel::{DeclarationError, Env, ExecutionError};

/// A format, by its place among them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Format(usize);

static FORMAT: Type = Type::new_unspecified_type("kubernetes.NamedFormat");

opaque!(Format, FORMAT);

/// What is wrong with a text; nothing if it is of the format.
type Check = fn(&str) -> Vec<String>;

fn when(is: bool, else_told: &'static str) -> Vec<String> {
    if is { Vec::new() } else { vec![else_told.to_owned()] }
}

fn owned(problems: impl IntoIterator<Item = &'static str>) -> Vec<String> {
    problems.into_iter().map(str::to_owned).collect()
}

/// What a prefix of a name becomes a name with: it may end as no name does.
fn completed(text: &str) -> String {
    match text.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => format!("{rest}a"),
        Some(_) | None => text.to_owned(),
    }
}

const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, \
and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

fn is_label_1035(text: &str) -> bool {
    names::is_dns_label(text) && text.starts_with(|c: char| c.is_ascii_lowercase())
}

fn is_uuid(text: &str) -> bool {
    let groups: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    let joined = text.replace('-', "");
    (lengths == [8, 4, 4, 4, 12] || (groups.len() == 1 && joined.len() == 32))
        && joined.bytes().all(|b| b.is_ascii_hexdigit())
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && nodefold_k8s::time::parse(&format!("{text}T00:00:00Z")).is_ok()
}

const FORMATS: [(&str, Check); 13] = [
    ("dns1123Label", |text| owned(names::dns_label_problems(text))),
    ("dns1123Subdomain", |text| owned(names::subdomain_problems(text))),
    ("dns1035Label", |text| when(is_label_1035(text), LABEL_1035)),
    ("qualifiedName", names::qualified_name_problems),
    ("dns1123LabelPrefix", |text| owned(names::dns_label_problems(&completed(text)))),
    ("dns1123SubdomainPrefix", |text| owned(names::subdomain_problems(&completed(text)))),
    ("dns1035LabelPrefix", |text| when(is_label_1035(&completed(text)), LABEL_1035)),
    ("labelValue", |text| owned(names::label_value_problems(text))),
    ("uri", |text| owned(super::url::problem(text))),
    ("uuid", |text| when(is_uuid(text), "does not match the UUID format")),
    ("byte", |text| when(STANDARD.decode(text).is_ok(), "invalid base64")),
    ("date", |text| when(is_date(text), "invalid date")),
    ("datetime", |text| when(nodefold_k8s::time::parse(text).is_ok(), "invalid datetime")),
];

/// Declares them.
pub(super) fn extension(env: &mut Env) -> Result<(), DeclarationError> {
    fn made<'b, 'v>(of: usize) -> Result<CowVal<'b, 'v>, ExecutionError> {
        Ok(CowVal::owned(Format(of)))
    }
    env.add_overload("format.dns1123Label", "format_dns1123Label", vec![], |_| made(0))?;
    env.add_overload("format.dns1123Subdomain", "format_dns1123Subdomain", vec![], |_| made(1))?;
    env.add_overload("format.dns1035Label", "format_dns1035Label", vec![], |_| made(2))?;
    env.add_overload("format.qualifiedName", "format_qualifiedName", vec![], |_| made(3))?;
    env.add_overload("format.dns1123LabelPrefix", "format_dns1123LabelPrefix", vec![], |_| made(4))?;
    env.add_overload("format.dns1123SubdomainPrefix", "format_dns1123SubdomainPrefix", vec![], |_| made(5))?;
    env.add_overload("format.dns1035LabelPrefix", "format_dns1035LabelPrefix", vec![], |_| made(6))?;
    env.add_overload("format.labelValue", "format_labelValue", vec![], |_| made(7))?;
    env.add_overload("format.uri", "format_uri", vec![], |_| made(8))?;
    env.add_overload("format.uuid", "format_uuid", vec![], |_| made(9))?;
    env.add_overload("format.byte", "format_byte", vec![], |_| made(10))?;
    env.add_overload("format.date", "format_date", vec![], |_| made(11))?;
    env.add_overload("format.datetime", "format_datetime", vec![], |_| made(12))?;
    env.add_overload("format.named", "format_named", vec![STRING_TYPE], named)?;
    env.add_member_overload("validate", "format_validate", FORMAT.to_owned(), vec![STRING_TYPE], validate)
}

fn named<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let wanted = args.first().and_then(|arg| arg.as_ref().downcast_ref::<CelString<'_>>());
    let found = wanted.and_then(|wanted| FORMATS.iter().position(|(name, _)| *name == wanted.inner()));
    Ok(CowVal::owned(match found {
        Some(at) => CelOptional::of(Box::new(Format(at))),
        None => CelOptional::none(),
    }))
}

fn validate<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let [format, text] = args.as_slice() else {
        return Err(ExecutionError::invalid_argument_count(2, args.len()));
    };
    let format = format.as_ref().downcast_ref::<Format>().and_then(|format| FORMATS.get(format.0));
    let text = text.as_ref().downcast_ref::<CelString<'_>>();
    let (Some((_, check)), Some(text)) = (format, text) else {
        return Err(ExecutionError::function_error("validate", "a format and a string are needed"));
    };
    let wrong = check(text.inner());
    if wrong.is_empty() {
        return Ok(CowVal::owned(CelOptional::none()));
    }
    let list: Box<dyn Val + 'v> = Box::new(texts(wrong.into_iter()));
    Ok(CowVal::owned(CelOptional::of(list)))
}
