//! A store engine of ordered maps: the executable specification of the storage contract.
