"""The workflow contracts: results of planner, implementor and reviewer, and the work items they become."""
