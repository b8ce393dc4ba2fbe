module.exports = require('headgate/pg-pool');
