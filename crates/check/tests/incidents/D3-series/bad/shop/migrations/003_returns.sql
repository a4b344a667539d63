CREATE TABLE returns (id bigint PRIMARY KEY);
