package diagnose

func (q *work) stuck() {}
