//! Routes and lanes: the values that fetches filter by. Each is stored once, under a key that other rows refer to; few exist,
//! so the known ones are kept in memory.

use std::{collections::HashMap, hash::Hash};

use duroxide_provider::rules::{Lane, Route, Rows};

use crate::{
    columns::insert,
    db::{Db, TRIPLE, number, triple, triple_columns, unsigned},
};

/// A value that is stored once.
pub(crate) trait Entry: Clone + Eq + Hash {
    /// The key of this value, if it is stored.
    fn find(&self, db: &Db) -> Rows<Option<i64>>;

    /// Stores this value; returns its key.
    fn insert(&self, db: &Db) -> Rows<i64>;

    /// The value of a key.
    fn load(db: &Db, key: i64) -> Rows<Option<Self>>;
}

/// The entries met so far.
#[derive(Debug)]
pub(super) struct Dictionary<V> {
    values: HashMap<u64, V>,
    keys: HashMap<V, u64>,
}

impl<V> Default for Dictionary<V> {
    fn default() -> Self {
        Self { values: HashMap::new(), keys: HashMap::new() }
    }
}

impl<V: Entry> Dictionary<V> {
    /// Forgets everything: a rollback may have undone an insert.
    pub(super) fn clear(&mut self) {
        self.values.clear();
        self.keys.clear();
    }

    /// The key of a value, which is stored if it is new.
    pub(super) fn key(&mut self, db: &Db, value: &V) -> Rows<u64> {
        if let Some(key) = self.keys.get(value) {
            return Ok(*key);
        }
        let key = match value.find(db)? {
            Some(key) => key,
            None => value.insert(db)?,
        };
        let key = unsigned(key);
        self.remember(key, value.clone());
        Ok(key)
    }

    /// The value of a key.
    pub(super) fn value(&mut self, db: &Db, key: u64) -> Rows<Option<&V>> {
        if !self.values.contains_key(&key) {
            let Some(value) = V::load(db, number(key))? else { return Ok(None) };
            self.remember(key, value);
        }
        Ok(self.values.get(&key))
    }

    fn remember(&mut self, key: u64, value: V) {
        self.values.insert(key, value.clone());
        self.keys.insert(value, key);
    }
}

const FIND_ROUTE: &str = "SELECT id FROM route
    WHERE coalesce(name, 0) = coalesce(?1, 0) AND coalesce(version, 0) = coalesce(?2, 0)
      AND coalesce(major, '') = coalesce(?3, '') AND coalesce(minor, '') = coalesce(?4, '')
      AND coalesce(patch, '') = coalesce(?5, '')";
const LOAD_ROUTE: &str = "SELECT name, version, major, minor, patch FROM route WHERE id = ?1";

impl Entry for Route {
    fn find(&self, db: &Db) -> Rows<Option<i64>> {
        let [major, minor, patch] = triple_columns(self.pinned);
        db.value(FIND_ROUTE, (&self.name, &self.version, major, minor, patch))
    }

    fn insert(&self, db: &Db) -> Rows<i64> {
        let [major, minor, patch] = triple_columns(self.pinned);
        insert!(
            db,
            route { name: &self.name, version: &self.version, major: major, minor: minor, patch: patch }
        )?;
        Ok(db.last_inserted())
    }

    fn load(db: &Db, key: i64) -> Rows<Option<Self>> {
        db.first(LOAD_ROUTE, [key], |row| {
            Ok(Self { name: row.get("name")?, version: row.get("version")?, pinned: triple(row, TRIPLE)? })
        })
    }
}

const FIND_LANE: &str = "SELECT id FROM lane WHERE coalesce(tag, 0) = coalesce(?1, 0) AND activity_name = ?2";
const LOAD_LANE: &str = "SELECT tag, activity_name FROM lane WHERE id = ?1";

impl Entry for Lane {
    fn find(&self, db: &Db) -> Rows<Option<i64>> {
        db.value(FIND_LANE, (&self.tag, &self.name))
    }

    fn insert(&self, db: &Db) -> Rows<i64> {
        insert!(db, lane { tag: &self.tag, activity_name: &self.name })?;
        Ok(db.last_inserted())
    }

    fn load(db: &Db, key: i64) -> Rows<Option<Self>> {
        db.first(LOAD_LANE, [key], |row| Ok(Self { tag: row.get("tag")?, name: row.get("activity_name")? }))
    }
}
