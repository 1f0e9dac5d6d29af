//! The finding codes: one table, from which the pages in `docs/errors` are checked.

use std::fmt;

macro_rules! codes {
    ($($name:ident = $code:literal, $title:literal;)+) => {
        /// What a finding is about. Stable: a code is never given another meaning.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum FindingCode {
            $(#[doc = $title] $name,)+
        }

        impl FindingCode {
            /// Every code, in order.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// The code as it is written, such as `TG0202`.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $code,)+ }
            }

            /// What it means, in a few words.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self { $(Self::$name => $title,)+ }
            }
        }
    };
}

codes! {
    NotReadable = "TG0101", "The directory or a file in it cannot be read";
    FileMissing = "TG0102", "A file that every bundle has is missing";
    LinkLeavesTree = "TG0103", "A symbolic link leaves the bundle";
    NotAFile = "TG0104", "An entry is neither a file nor a directory";
    TreeTooLarge = "TG0105", "The tree has too many files, levels or bytes";
    FileTooLarge = "TG0106", "A file is too large";
    NotUtf8 = "TG0107", "A name or a text is not UTF-8, or a name has a control character";
    UnexpectedFile = "TG0108", "A file stands where it could be mistaken for a part of the bundle";
    ManifestMismatch = "TG0109", "The tree does not agree with its manifest";
    ManifestSyntax = "TG0110", "A line of the manifest is not one that sha256sum writes";
    WorkspaceName = "TG0111", "A directory name is no tenant or workspace id in its only encoding";
    DirectoryTwice = "TG0112", "A directory is in the tree twice";
    YamlSyntax = "TG0201", "The text is not YAML";
    UnknownKey = "TG0202", "A key is not known here";
    MissingKey = "TG0203", "A required key is missing";
    WrongType = "TG0204", "A value has the wrong type";
    InvalidValue = "TG0205", "A value is not allowed";
    Duplicate = "TG0206", "Something that must be unique is there twice";
    UnsupportedFormat = "TG0207", "The bundle is in a format that this version does not read";
    Reserved = "TG0208", "An id or code is reserved";
    UnknownReference = "TG0209", "A name refers to nothing in the bundle";
    SchemaSyntax = "TG0301", "The schema does not parse";
    SchemaWarning = "TG0302", "Cedar warns about the schema";
    SchemaIncomplete = "TG0303", "The schema lacks a declaration that the mapping needs";
    UnknownFact = "TG0304", "The schema declares a fact that Tollgate does not know";
    FactType = "TG0305", "The schema declares a fact with another type than it has";
    ArgumentType = "TG0306", "An argument is declared with a type that no JSON value has";
    ActionMissing = "TG0307", "A tool that a typed hook can select has no action in its schema";
    SchemaConflict = "TG0308", "The schema is not valid";
    EntitiesSyntax = "TG0401", "The entities are not a JSON array of entities";
    EntityInvalid = "TG0402", "An entity does not fit the schema";
    EntityOfCatalogue = "TG0403", "An entity comes from the catalogue or the schema, not from entities.json";
    PolicySyntax = "TG0501", "A policy does not parse";
    PolicyTooLong = "TG0502", "A policy is too long";
    NestedTooDeep = "TG0503", "Brackets or operators are nested too deeply";
    PolicyIdMissing = "TG0504", "A policy has no @id";
    PolicyIdInvalid = "TG0505", "An @id is not allowed, or there twice";
    UnknownAnnotation = "TG0506", "An annotation is not known";
    InvalidAnnotation = "TG0507", "A @code or @message is not allowed";
    Template = "TG0508", "A policy is a template";
    PolicyInvalid = "TG0509", "A policy does not pass strict validation";
    PolicyWarning = "TG0510", "Cedar warns about a policy";
    NoPolicies = "TG0511", "A hook has no policies, or too many";
    ManyEverywhere = "TG0512", "Many policies are evaluated for every call";
    NotCompiled = "TG0601", "The bundle could not be compiled";
}

impl fmt::Display for FindingCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl serde::Serialize for FindingCode {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
