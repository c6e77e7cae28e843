package gen

// ParameterCount is the number of parameters of a layer, by the way in which parallelism divides them.
type ParameterCount struct {
	// Attention and FFN are divided by tensor parallelism; Experts counts all experts, which expert
	// parallelism divides; Whole (norms, router, biases) is held by every rank.
	Attention, FFN, Experts, Whole int64
}

// Total returns the number of the layer's parameters over all ranks.
func (c ParameterCount) Total() int64 { return c.Attention + c.FFN + c.Experts + c.Whole }

func flag(b bool, n int64) int64 {
	if b {
		return n
	}
	return 0
}

// norm returns the parameters of a norm over n values.
func (m *Model) norm(n int64) int64 { return n + flag(m.NormBias, n) }

// LayerCount returns the parameters of a layer of a kind.
func (m *Model) LayerCount(k LayerKind) (c ParameterCount) {
	if k == ssm {
		wide := m.Inner() + 2*m.SSMGroups*m.SSMState
		c.Attention = m.Hidden*m.SSMInput() + m.Inner()*m.Hidden + wide*(m.SSMConv+1) + 3*m.SSMHeads +
			m.Inner()
		c.Whole = m.norm(m.Hidden)
		return c
	}
	if k.Attention() {
		m.attention(&c)
	}
	switch {
	case k.HasFFN():
		c.FFN = m.Matrices()*m.Hidden*m.FFN + flag(m.FFNBias, (m.Matrices()-1)*m.FFN)
		c.Whole += m.norm(m.Hidden) + flag(m.FFNBias, m.Hidden)
	case k.HasExperts():
		e, in, f := int64(m.Experts), m.ExpertInput(), m.ExpertSize()
		c.Experts = e * (m.Matrices()*in*f + flag(m.FFNBias, (m.Matrices()-1)*f+in))
		c.FFN = m.Matrices() * m.Hidden * m.SharedFFN
		c.Whole += m.norm(m.Hidden) + m.Hidden*e + flag(m.RouterBias, e) + 2*m.Hidden*m.Latent
	}
	return c
}

// attention adds the parameters of attention and of its norm.
func (m *Model) attention(c *ParameterCount) {
	h, q, kv := m.Hidden, m.Heads*m.Dim(), m.KVHeads*m.Dim()
	c.Whole += m.norm(h)
	if m.KVRank > 0 {
		if m.QRank > 0 {
			c.Attention += m.QRank * q
			c.Whole += h*m.QRank + m.QRank
		} else {
			c.Attention += h * q
		}
		c.Attention += m.KVRank*m.Heads*(m.NopeDim+m.ValueDim) + m.Heads*m.ValueDim*h
		c.Whole += h*(m.KVRank+m.RopeDim) + m.KVRank
		return
	}
	c.Attention += h*(q+2*kv) + q*h + flag(m.QKVBias, q+2*kv) + flag(m.Sinks, m.Heads)
	c.Whole += flag(m.OutBias, h) + flag(m.QKNorm, 2*m.Dim())
}

// Embedding returns the parameters of the embedding, or of the head.
func (m *Model) Embedding() int64 { return m.Vocab * m.Hidden }

// FinalNorm returns the parameters of the norm before the head.
func (m *Model) FinalNorm() int64 { return m.norm(m.Hidden) }

// Params returns the parameters of the model, without those that predict further tokens.
func (m *Model) Params() int64 {
	n := m.Embedding() + m.FinalNorm() + m.Positions*m.Hidden
	if !m.Tied {
		n += m.Embedding()
	}
	for i := range m.Layers {
		n += m.LayerCount(m.Layer(i)).Total()
	}
	return n
}

// MTPExtra returns the parameters of an MTP module besides its layer: the matrix that joins two inputs, their
// norms, and one norm of the output.
func (m *Model) MTPExtra() int64 { return 2*m.Hidden*m.Hidden + 3*m.norm(m.Hidden) }

// FLOPs returns the operations of training on one token of a sequence of seq tokens: six per parameter that
// multiplies it (Kaplan et al., 2020, section 2.1), counting only the experts that it is sent to, plus
// attention's scores and values, half of which the causal mask removes. The embedding is a lookup and is not
// counted, nor is recomputation, so that model FLOPs utilisation is comparable (MFU, Chowdhery et al., PaLM,
// 2022, appendix B).
func (m *Model) FLOPs(seq int64) float64 {
	sum := float64(m.Embedding()) * float64(1+m.MTP)
	for i := range m.Layers + m.MTP {
		k := m.Layer(i)
		c := m.LayerCount(k)
		sum += float64(c.Attention + c.FFN)
		if k.HasExperts() {
			sum += float64(m.Hidden*int64(m.Experts)) + 2*float64(m.Hidden*m.Latent) +
				float64(int64(m.TopK)*m.Matrices()*m.ExpertInput()*m.ExpertSize())
		}
		if m.KVRank > 0 && k.Attention() {
			sum += float64(m.Hidden * (m.QRank + m.KVRank + m.RopeDim))
		}
		if k.Attention() {
			sum += m.Context(k, seq) * float64(m.Heads*(m.Dim()+m.ValueSize()))
		}
		if k == ssm {
			sum += m.SSMProducts()
		}
		if i >= m.Layers {
			sum += float64(2 * m.Hidden * m.Hidden)
		}
	}
	return 6 * sum
}

// Context returns the mean number of keys that a token of a sequence of seq tokens attends to.
func (m *Model) Context(k LayerKind, seq int64) float64 {
	if s, w := float64(seq), float64(m.Window); k.Windowed() && w < s {
		return w * (s - w/2) / s // the first see fewer
	}
	return float64(seq) / 2
}

// ssmChunk is the part of a sequence that Mamba-2 multiplies at a time (chunk_size of its kernels).
const ssmChunk = 128

// SSMStates returns the number of state elements that a chunk writes per element of a head and token.
func (m *Model) SSMStates() float64 { return float64(m.SSMState) / ssmChunk }

// SSMProducts returns the multiplications per token of a state space layer besides its matrices: those within
// a chunk, as in attention, and those that write and read the states (Dao and Gu, 2024, section 6).
func (m *Model) SSMProducts() float64 {
	in := float64(m.Inner())
	return ssmChunk/2*(float64(m.SSMGroups*m.SSMState)+in) + 2*in*float64(m.SSMState)
}
